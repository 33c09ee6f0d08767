"""`%gpupool …` in a cell, against a real pool."""

import sys
from typing import TYPE_CHECKING

import pytest
from IPython.core.error import UsageError
from waiting import eventually

from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.notebook.magics.commands import commands
from jupyter_gpupool.protocol.api import StatusView

if TYPE_CHECKING:
    from .conftest import Notebook

pytestmark = pytest.mark.e2e
VERBS = (
    *("claim", "status", "ls", "scale", "release", "attach", "log", "explain", "keep"),
    *("hibernate", "resume"),
)


def test_every_verb_is_there() -> None:
    """Those that are promised, and no other."""
    assert sorted(commands.commands) == sorted(VERBS)


@pytest.mark.parametrize("line", ["%gpupool", *(f"%gpupool {verb}" for verb in VERBS)])
def test_help_is_printed(bare_notebook: "Notebook", line: str) -> None:
    """Of the whole and of each, without a pool."""
    ran = bare_notebook.run(f"{line} --help")
    assert ran.error is None
    assert ran.out.startswith(f"Usage: {line}")


def test_missing_package_is_one_line(
    bare_notebook: "Notebook", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever installed the package alone reads what else it takes."""
    monkeypatch.delitem(sys.modules, "jupyter_gpupool.notebook.magics.claiming", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = bare_notebook.run("%gpupool claim")
    assert isinstance(ran.error, UsageError)
    assert str(ran.error).startswith("This needs the package distributed")


def test_help_of_cells_is_with_the_magics_own(bare_notebook: "Notebook") -> None:
    """IPython runs no cell magic that has no cell, and a mistake above one leads here."""
    assert "Usage: %%gpupool [OPTIONS]" in bare_notebook.run("%gpupool --help").out
    assert str(bare_notebook.run("%%gpupool --nonsense\n1").error).endswith("%gpupool --help")


def test_cell_help_is_printed_and_the_cell_not_run(bare_notebook: "Notebook") -> None:
    """Without a pool as well."""
    ran = bare_notebook.run("%%gpupool --help\nran = True")
    assert ran.out.startswith("Usage: %%gpupool [OPTIONS]")
    assert "ran" not in bare_notebook.shell.user_ns


def test_claim_is_estimated_instead_of_made(notebook: "Notebook") -> None:
    """And may be taken as a value; what it is thought to take is its user's own word."""
    ran = notebook.run("told = %gpupool claim 1 --expected 1h --estimate\nprint(told)")
    assert (ran.error, ran.out.strip()) == (None, "1 now")
    assert notebook["told"].now
    assert "You hold no claim." in notebook.run("%gpupool ls").out


def test_alone_it_shows_the_status(notebook: "Notebook") -> None:
    """The same as `%gpupool status`."""
    assert "8 simulated devices" in notebook.run("%gpupool").out
    assert "8 simulated devices" in notebook.run("%gpupool status\n1").out


def test_value_is_returned_where_it_is_taken(notebook: "Notebook") -> None:
    """And then it is not shown, too."""
    ran = notebook.run("seen = %gpupool status")
    assert ran.out == ""
    assert isinstance(notebook["seen"], StatusView)


def test_claim_binds_cluster_and_client(notebook: "Notebook") -> None:
    """Under their usual names, and says so."""
    ran = notebook.run("%gpupool claim 2 --name bound\n1")
    said = "Claim bound has 2 workers; its cluster is cluster, its client is client."
    assert said in ran.out
    assert isinstance(notebook["cluster"], ClaimCluster)
    assert notebook["client"].submit(sum, [1, 2]).result(timeout=30) == 3


@pytest.mark.parametrize("words", ["0.5", "1 --gpu-memory 8GiB", "0.5 --as cluster"])
def test_part_of_a_device_is_claimed(notebook: "Notebook", words: str) -> None:
    """By its share or by its memory, with one worker on it."""
    ran = notebook.run(f"%gpupool claim {words}\ncluster")
    assert ran.error is None, ran.err
    [lease] = notebook["cluster"].view.leases
    assert lease.share == 0.5


def test_devices_of_a_worker_are_claimed(notebook: "Notebook") -> None:
    """Two devices are one worker with both."""
    notebook.run("%gpupool claim 2 --gpus-per-worker 2")
    [lease] = notebook["cluster"].view.leases
    assert len(lease.devices) == 2
    assert "no number of workers" in str(notebook.run("%gpupool claim 3 --gpus-per-worker 2").error)


def test_claim_binds_other_names(notebook: "Notebook") -> None:
    """One or two; a value that is taken is the cluster."""
    notebook.run("taken = %gpupool claim 1 --as mine")
    assert notebook["taken"] is notebook["mine"]
    assert "client" not in notebook.shell.user_ns


def test_second_claim_leaves_the_first(claimed: "Notebook") -> None:
    """Although its variable is bound anew."""
    claimed.run("%gpupool claim 1 --name other")
    listed = claimed.run("%gpupool ls").out
    assert "mine" in listed
    assert "other" in listed


def test_variables_of_the_notebook_are_put_in(notebook: "Notebook") -> None:
    """As in every magic."""
    ran = notebook.run("count, name = 1, 'from a variable'\n%gpupool claim {count} --name {name!r}")
    assert ran.error is None, ran.err
    assert notebook["cluster"].name == "from a variable"


def test_scaling_changes_the_bounds(claimed: "Notebook") -> None:
    """Of the only claim, or of the one that is named."""
    claimed.run("view = %gpupool scale 1-3")
    assert (claimed["view"].workers.min, claimed["view"].workers.max) == (1, 3)
    claimed.run("view = %gpupool scale mine 2")
    assert (claimed["view"].workers.min, claimed["view"].workers.max) == (1, 2)


def test_keeping_tells_until_when(claimed: "Notebook") -> None:
    """And the claim says the same."""
    assert "It is kept until" in claimed.run("%gpupool keep 1h --reason training").out


def test_explanation_tells_of_the_claim(claimed: "Notebook") -> None:
    """Without a name, of the only one."""
    assert "Claim mine: running" in claimed.run("%gpupool explain").out


def test_log_has_what_no_cell_shows(claimed: "Notebook") -> None:
    """Such as what C code prints; of one worker or of all."""
    claimed.run("%%gpupool\nimport os\nos.write(1, b'from below\\n');")
    assert "from below" in claimed.run("%gpupool log").out
    one = claimed.run("%gpupool log mine --worker 0 --lines 5").out
    assert "from below" in one
    assert "scheduler" not in one


def test_released_claim_is_closed(claimed: "Notebook") -> None:
    """Its cluster with it, and nothing is held any more."""
    cluster = claimed["cluster"]
    assert "Given back: mine." in claimed.run("%gpupool release").out
    assert cluster.status.name == "closed"
    assert "You hold no claim" in claimed.run("%gpupool release").err


def test_released_claim_is_still_explained_by_its_name(claimed: "Notebook") -> None:
    """Why it is over, to whoever comes back and wonders."""
    claimed.run("%gpupool release")
    ended = eventually(lambda: _explained_as_ended(claimed), 30, "the claim has ended")
    assert "ago (released): " in ended


def _explained_as_ended(claimed: "Notebook") -> str:
    ran = claimed.run("%gpupool explain mine")
    assert ran.error is None
    return ran.out if ran.out.startswith("Claim mine: ended") else ""


def test_nameless_release_leaves_strangers_alone(
    claimed: "Notebook", monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several, it lists them instead."""
    claimed.run("%gpupool claim 1 --name other")
    ran = claimed.run("%gpupool release")
    assert "This notebook holds 2 claims: mine, other. Name one of them." in ran.err
    assert "mine" in claimed.run("%gpupool ls").out


def test_claims_of_one_name_are_told_apart(claimed: "Notebook") -> None:
    """Whoever runs a cell with a claim twice has two."""
    first = claimed["cluster"].claim_id
    claimed.run("%gpupool claim 1 --name mine")
    second = claimed["cluster"].claim_id
    listed = f"2 claims: {first} (mine), {second} (mine)."
    assert listed in claimed.run("%gpupool explain").err
    assert "2 claims named 'mine'. Choose by id" in claimed.run("%gpupool release mine").err


def test_attached_claim_is_bound(claimed: "Notebook") -> None:
    """By its name."""
    ran = claimed.run("%gpupool attach mine --as again,its_client\n1")
    assert "its cluster is again, its client is its_client" in ran.out
    assert claimed["again"].claim_id == claimed["cluster"].claim_id


MISTAKES = {
    "%gpupool clam": "No such command 'clam'.",
    "%gpupool claim many": "'many' is no number of devices. Write for example 2",
    "%gpupool claim -1": "'-1' is no number of devices. Write for example 2",
    "%gpupool scale mine -1": "'-1' is no number. Write for example 2",
    "%gpupool keep mine -1h": "'-1h' is not a time above zero. Write for example",
    "%gpupool claim 1 --as 1a": "'1a' is no name of a variable.",
    "%gpupool claim 1 --as a,b,c": "'a,b,c' is more than two names",
    "%gpupool claim 1 --expected soon": "'soon' is not a time above zero.",
    "%gpupool claim 1 --time-limit soon": "'soon' is not a time above zero.",
    "%gpupool claim 1 --colour red": "No such option '--colour'.",
    "%gpupool claim 'open": "No closing quotation",
    "%gpupool release a --all": "Name a claim or say --all, not both.",
    "%gpupool release": "You hold no claim.",
    "%gpupool scale": "It is: scale [NAME] WORKERS.",
    "%gpupool keep": "It is: keep [NAME] TIME.",
    "%gpupool attach no-such-claim": "There is no claim 'no-such-claim'.",
    "%gpupool explain": "You hold no claim.",
    "%gpupool log --lines 0": "0 is not in the range",
    "%%gpupool\n1": "This notebook holds no claim. First: %gpupool claim",
    "%%gpupool --in 1\n1": "'1' is no name of a variable.",
    "%%gpupool --on no-such-claim\n1": "There is no claim 'no-such-claim'.",
}


@pytest.mark.parametrize("cell", MISTAKES)
def test_mistake_is_one_line_on_stderr(notebook: "Notebook", cell: str) -> None:
    """And the cell counts as failed."""
    ran = notebook.run(cell)
    assert MISTAKES[cell] in ran.err
    assert len(ran.err.splitlines()) == 1
    assert (ran.out, ran.error is None) == ("", False)


def test_unreachable_pool_is_one_line(
    bare_notebook: "Notebook", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names where it was looked for."""
    monkeypatch.setenv("GPUPOOL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GPUPOOL_TOKEN", "none")
    ran = bare_notebook.run("%gpupool status")
    assert "127.0.0.1:9" in ran.err
    assert len(ran.err.splitlines()) == 1
