"""`%%gpupool`: a cell on a worker, against a real one."""

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
from waiting import eventually

from jupyter_gpupool.pool.claim import Phase

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.e2e
WITHIN_S = 30.0


def test_cell_runs_on_the_worker(claimed: "Notebook") -> None:
    """Not here, and its last value is shown as any cell's."""
    there = claimed.run("%%gpupool\nimport os\nos.getpid()").value
    here = claimed.run("import os\nos.getpid()").value
    known = list(claimed["client"].run(lambda: __import__("os").getpid()).values())
    assert repr(there) == repr(known[0])
    assert repr(there) != repr(here)


def test_variables_stay_on_the_worker(claimed: "Notebook") -> None:
    """From cell to cell, and none comes here unasked."""
    claimed.run("%%gpupool\nx = 20")
    assert repr(claimed.run("%%gpupool\nx + 1").value) == "21"
    assert "x" not in claimed.shell.user_ns


def test_chosen_variables_go_in_and_come_back(claimed: "Notebook") -> None:
    """Also functions and classes that were made in a cell."""
    claimed.run("def twice(n): return 2 * n\nn = 4")
    ran = claimed.run(
        "%%gpupool --in twice,n --out m,Made\nm = twice(n)\nclass Made:\n    size = m"
    )
    assert ran.error is None, ran.err
    assert (claimed["m"], claimed["Made"].size) == (8, 8)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%%gpupool --out gone\n1", "There is no variable 'gone' on the worker."),
        ("%%gpupool --in gone\n1", "There is no variable 'gone' in this notebook."),
        ("%%gpupool --out g\ng = (n for n in [])", "The variable 'g' cannot be pickled: TypeError"),
        ("%%gpupool --in lock\n1", "The variable 'lock' cannot be pickled: TypeError"),
    ],
)
def test_variable_that_cannot_be_passed_is_named(
    claimed: "Notebook", cell: str, sentence: str
) -> None:
    """In one line."""
    claimed.run("import threading\nlock = threading.Lock()")
    ran = claimed.run(cell)
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_prints_are_shown_in_order(claimed: "Notebook") -> None:
    """What goes to stderr stays apart."""
    ran = claimed.run(
        "%%gpupool\nimport sys\n"
        "for n in range(500): print(n)\n"
        "print('\\udc80 wrong', file=sys.stderr)"
    )
    assert ran.out.split() == [str(n) for n in range(500)]
    assert ran.err == "\\udc80 wrong\n"


def test_flood_of_output_arrives_whole(claimed: "Notebook") -> None:
    """More than is gathered at once."""
    ran = claimed.run("%%gpupool\nfor _ in range(40): print('x' * 49_999)")
    assert len(ran.out) == 40 * 50_000


def test_two_streams_in_turn_arrive_whole(claimed: "Notebook") -> None:
    """Each change from one to the other makes a piece, and the last ones come late."""
    source = "import sys\nfor _ in range(50_000): print(end='a'); print(end='b', file=sys.stderr)"
    ran = claimed.run(f"%%gpupool\n{source}")
    assert (len(ran.out), len(ran.err)) == (50_000, 50_000)


def test_error_without_a_text_is_still_the_cells_own(claimed: "Notebook") -> None:
    """Its class is the user's, whose mistake shows no frame of ours."""
    source = "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E"
    ran = claimed.run(f"%%gpupool\n{source}")
    assert "E: <exception str() failed>" in ran.out
    assert "on_worker" not in ran.out


def test_error_shows_the_cells_own_frames(claimed: "Notebook") -> None:
    """With their lines, and none of ours or of Dask's."""
    ran = claimed.run("%%gpupool\ndef f():\n    return 1 / 0\nf()")
    assert "return 1 / 0" in ran.out
    assert "ZeroDivisionError: division by zero" in ran.out
    assert "on_worker" not in ran.out
    assert type(ran.error).__name__ == "CellFailed"


@pytest.mark.parametrize(
    ("source", "shown"),
    [("1 +", "SyntaxError"), ("import sys\nsys.exit(3)", "SystemExit: 3"), ("gone", "NameError")],
)
def test_worker_outlives_what_a_cell_raises(claimed: "Notebook", source: str, shown: str) -> None:
    """Its variables with it."""
    claimed.run("%%gpupool\nkept = 1")
    assert shown in claimed.run(f"%%gpupool\n{source}").out
    assert repr(claimed.run("%%gpupool\nkept").value) == "1"


def test_semicolon_hides_the_value(claimed: "Notebook") -> None:
    """As in any cell."""
    assert claimed.run("%%gpupool\n1;").value is None


def test_rich_value_is_shown_richly(claimed: "Notebook") -> None:
    """By what it says of itself, where it is."""
    ran = claimed.run(
        "%%gpupool\nclass Rich:\n    def _repr_html_(self): return '<b>rich</b>'\nRich()"
    )
    assert ran.value._repr_mimebundle_()["text/html"] == "<b>rich</b>"


def test_time_limit_stops_the_cell(claimed: "Notebook") -> None:
    """A sleeping one too, and the worker goes on with its variables."""
    claimed.run("%%gpupool\nkept = 1")
    ran = claimed.run("%%gpupool --timeout 0.3s\nimport time\ntime.sleep(600)")
    assert "The cell took longer than its --timeout and was stopped." in ran.err
    assert repr(claimed.run("%%gpupool\nkept").value) == "1"


def test_worker_can_be_chosen(notebook: "Notebook") -> None:
    """By number or name; the next cell stays there."""
    notebook.run("%gpupool claim 2\ncluster.wait_for_workers(2)")
    pids = [
        repr(notebook.run(f"%%gpupool --worker {n}\nimport os\nos.getpid()").value) for n in (0, 1)
    ]
    assert pids[0] != pids[1]
    assert repr(notebook.run("%%gpupool\nos.getpid()").value) == pids[1]
    assert "There is no worker '2'." in notebook.run("%%gpupool --worker 2\n1").err


def test_lost_worker_is_said_so(claimed: "Notebook") -> None:
    """Instead of a wait without end; the next cell has the new one."""
    ran = claimed.run("%%gpupool\nimport os\nos._exit(1)")
    assert "ended while it ran the cell; its variables are lost." in ran.err
    assert repr(claimed.run("%%gpupool\n1").value) == "1"


@pytest.mark.parametrize(
    ("command", "wake"),
    [("hibernate mine", "%gpupool resume mine"), ("scale mine 0", "%gpupool resume mine")],
)
def test_hibernating_claim_is_said_to_hibernate(
    claimed: "Notebook", command: str, wake: str
) -> None:
    """At once, with how to wake it; and the cell runs then."""
    claimed.run(f"%gpupool {command}")
    eventually(lambda: claimed["cluster"].view.phase is Phase.HIBERNATED, WITHIN_S)
    ran = claimed.run("%%gpupool\n1")
    assert "Claim mine hibernates" in ran.err
    assert wake in ran.err
    claimed.run(wake)
    assert repr(claimed.run("%%gpupool\n1").value) == "1"


@pytest.mark.parametrize("taken", ["hibernate('mine')", "scale('mine', 0)"])
def test_cell_hears_why_its_worker_was_taken(claimed: "Notebook", taken: str) -> None:
    """Not that it ended for reasons that a log would tell."""
    claimed.run(
        "import threading\nimport jupyter_gpupool as gpupool\n"
        f"threading.Timer(0.5, lambda: gpupool.{taken}).start()"
    )
    ran = claimed.run("%%gpupool\nimport time\ntime.sleep(600)")
    assert "Claim mine hibernates. Worker" in ran.err
    assert "its variables are lost." in ran.err
    assert "%gpupool log" not in ran.err


def test_claim_that_ends_ends_the_cell(claimed: "Notebook") -> None:
    """In one line that says so."""
    claimed.run(
        "import threading\nimport jupyter_gpupool as gpupool\n"
        "threading.Timer(0.5, gpupool.release, ['mine']).start()"
    )
    ran = claimed.run("%%gpupool\nimport time\ntime.sleep(600)")
    assert type(ran.error).__name__ == "UsageError"
    assert "Traceback" not in ran.err + ran.out


def test_cell_of_a_client_that_closes_at_once_prints_nothing(
    claimed: "Notebook", monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cell leaves to be done after it has nobody to tell of its errors."""
    ends: SimpleQueue[None] = SimpleQueue()
    told: list[object] = []

    def fail(*_arguments: object) -> None:
        ends.put(None)
        raise AttributeError("'NoneType' object has no attribute 'run_function'")

    monkeypatch.setattr(claimed["client"], "run_on_scheduler", fail)
    monkeypatch.setattr(threading, "excepthook", told.append)
    assert repr(claimed.run("%%gpupool\n1").value) == "1"
    ends.get(timeout=30)
    for thread in threading.enumerate():
        if thread.name == "gpupool cell":
            thread.join(30)
    assert not told


def test_large_variable_goes_there_and_back(claimed: "Notebook") -> None:
    """Without a warning of Dask's."""
    claimed.run("big = bytes(20_000_000)")
    ran = claimed.run("%%gpupool --in big --out copy\ncopy = big + b'1'")
    assert (ran.err, len(claimed["copy"])) == ("", 20_000_001)


def test_cell_that_was_called_off_never_runs(claimed: "Notebook") -> None:
    """Although its worker was busy then, and becomes free later."""
    claimed.run("import time\nbusy = client.submit(time.sleep, 2)")
    ran = claimed.run("%%gpupool --timeout 0.3s\nhas_run = True")
    assert "The cell took longer than its --timeout and was stopped." in ran.err
    assert repr(claimed.run("%%gpupool\n'has_run' in globals()").value) == "False"


def test_claim_made_in_python_is_held_as_well(notebook: "Notebook") -> None:
    """By the variable that has it."""
    notebook.run("import jupyter_gpupool as gpupool\nmade = gpupool.claim(1, quiet=True)")
    assert repr(notebook.run("%%gpupool\n1").value) == "1"
    assert notebook["made"].name in notebook.run("%gpupool release").out
