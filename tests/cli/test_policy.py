"""The admin's life with the policy, against a real pool: check, apply, compare, go back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpupool.cli import root
from jupyter_gpupool.client.embedded import EmbeddedPool

pytestmark = pytest.mark.e2e
Run = Callable[..., "tuple[int, str, str]"]

TEAMS = """\
[queues.vision]
weight = 2
users = ["ann"]

[queues.others]
users = ["*"]

[scheduling]
reclaim = false
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real pool of its own, whose policy the tests change one after the other."""
    folder = tmp_path_factory.mktemp("pool")
    with EmbeddedPool(folder, options=("--simulated=2",)) as pool:
        yield pool.address


@pytest.fixture
def run(address: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command within this process; `typed` is what its user answers."""

    def start(*arguments: str, token: str = address.token, typed: str = "") -> Any:
        monkeypatch.setenv("GPUPOOL_URL", address.url)
        monkeypatch.setenv("GPUPOOL_TOKEN", token)
        monkeypatch.setattr("sys.stdin", _Typed(typed))
        capsys.readouterr()
        status = root.run(arguments)
        return status, *capsys.readouterr()

    return start


class _Typed:
    """Standard input as a shell's pipe gives it."""

    def __init__(self, typed: str) -> None:
        import io  # noqa: PLC0415 - for this alone

        self.buffer = io.BytesIO(typed.encode())
        self._text = io.TextIOWrapper(self.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text, name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A policy that makes sense."""
    path = tmp_path / "policy.toml"
    path.write_text(TEAMS)
    return path


def number(run: Run) -> int:
    """The revision in force."""
    revision: int = json.loads(run("policy", "show", "--json")[1])["revision"]
    return revision


def begin(run: Run, file: Path) -> int:
    """Have the teams' policy in force, whatever was before."""
    file.write_text(TEAMS)
    assert run("policy", "apply", str(file), "--yes")[0] == 0
    return number(run)


def test_wrong_document_is_a_line_for_each_mistake(run: Run, file: Path) -> None:
    """Its place first, as editors read it; nothing changes, whether checked or applied."""
    before = number(run)
    file.write_text("[queues.a]\nweigth = 2\n[queues.b]\npriority = 1.5\n")
    for how in (["check"], ["apply", "--yes"]):
        status, out, err = run("policy", *how, str(file))
        assert (status, out) == (1, "")
        first, second = err.splitlines()
        assert first == f'{file}:2: The policy knows no key "queues.a.weigth".'
        assert second.startswith(f"{file}:4: queues.b.priority: ")
    assert number(run) == before


def test_good_document_is_checked_without_being_applied(run: Run, file: Path) -> None:
    """How many keys would differ from what is in force."""
    before = begin(run, file)
    assert run("policy", "check", str(file))[:2] == (
        0,
        f"{file}: good. Nothing differs from revision {before}.\n",
    )
    file.write_text(TEAMS.replace("weight = 2", "weight = 3"))
    status, out, _ = run("policy", "check", str(file))
    assert (status, out) == (0, f"{file}: good. 1 key differs from revision {before}.\n")
    assert number(run) == before


def test_apply_shows_the_difference_and_asks(run: Run, file: Path) -> None:
    """No changes nothing; yes makes the next revision."""
    before = begin(run, file)
    file.write_text(TEAMS.replace("weight = 2", "weight = 3"))
    status, _, err = run("policy", "apply", str(file), typed="n\n")
    assert (status, number(run)) == (1, before)
    assert err.endswith("Nothing was changed.\n")
    assert "-weight = 2\n+weight = 3\n" in err
    assert f"Apply this as revision {before + 1}?" in err
    status, out, _ = run("policy", "apply", str(file), "-m", "vision has paid", typed="y\n")
    assert (status, out) == (0, f"Revision {before + 1} is in force.\n")

    for how in ([], ["--yes"]):
        again = run("policy", "apply", str(file), *how)
        assert again == (0, f"Revision {before + 1} was in force already.\n", "")


def test_document_comes_from_standard_input_too(run: Run, file: Path) -> None:
    """Which then cannot hold the answer."""
    before = begin(run, file)
    status, _, err = run("policy", "apply", "-", typed=f"{TEAMS}# more\n")
    assert (status, "--yes" in err, number(run)) == (2, True, before)
    assert run("policy", "apply", "-", "--yes", typed=f"{TEAMS}# more\n")[0] == 0
    assert number(run) == before + 1
    status, _, err = run("policy", "check", "-", typed="[queues.a]\nweight = x\n")
    assert (status, err.startswith("standard input:2: ")) == (1, True)


def test_shown_document_is_the_one_applied(run: Run, file: Path) -> None:
    """It can be redirected into a file; who did it when goes elsewhere."""
    now = begin(run, file)
    status, out, err = run("policy", "show")
    assert (status, out) == (0, TEAMS)
    assert err.startswith(f"Revision {now}, ")
    assert run("policy", "show", "0")[1].startswith("[queues.default]\n")
    assert "weight" not in run("policy", "show", "--queues")[1]


def test_files_and_revisions_are_compared(run: Run, file: Path) -> None:
    """A file with what is in force, and what changed last."""
    now = begin(run, file)
    file.write_text(TEAMS.replace('"ann"', '"ann", "bob"'))
    [change] = json.loads(run("policy", "diff", str(file), "--json")[1])["changes"]
    assert change == {"key": "queues.vision.users", "before": '["ann"]', "after": '["ann", "bob"]'}
    assert f"--- revision {now}\n+++ {file}\n" in run("policy", "diff", str(file))[1]
    assert run("policy", "diff", "--from", str(now), "--to", str(now))[1] == "Nothing differs.\n"
    assert f"+++ revision {now}" in run("policy", "diff", "--from", "0")[1]
    assert run("policy", "diff", str(file), "--to", "1")[0] == 2


def test_rollback_in_one_command_stays_in_the_history(run: Run, file: Path) -> None:
    """What came in between is kept, with author, time and comment."""
    first = begin(run, file)
    file.write_text(TEAMS.replace("weight = 2", "weight = 9"))
    run("policy", "apply", str(file), "--yes", "--comment", "a try")
    status, out, _ = run("policy", "rollback", str(first), "--yes", "-m", "was wrong")
    assert (status, out) == (0, f"Revision {first + 2} is in force.\n")
    assert run("policy", "show")[1] == TEAMS
    newest, tried = json.loads(run("policy", "history", "--limit", "2", "--json")[1])
    assert (newest["restores"], newest["comment"]) == (first, "was wrong")
    assert (tried["revision"], tried["comment"]) == (first + 1, "a try")
    table = run("policy", "history")[1]
    assert "was wrong" in table
    assert [line.split()[0] for line in table.splitlines() if "in force" in line] == [
        str(first + 2)
    ]
    assert run("policy", "rollback", "9999", "--yes")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check", "/nowhere/policy.toml"], 2),
        (["apply"], 2),
        (["rollback", "-1"], 2),
        (["rollback", "x"], 2),
        (["show", "99999"], 1),
        (["diff", "--from", "99999"], 1),
    ],
)
def test_mistake_is_one_line(run: Run, arguments: list[str], status: int) -> None:
    """Never a traceback."""
    found, out, err = run("policy", *arguments)
    assert (found, out) == (status, "")
    assert "Traceback" not in err
    assert err.strip()


def test_user_sees_their_queues_and_changes_nothing(run: Run, file: Path) -> None:
    """Whoever is no admin is told so in one line."""
    now = begin(run, file)
    token = json.loads(run("token", "create", "--user", "bob", "--json")[1])["secret"]
    status, out, _ = run("queues", token=token)
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["QUEUE", "others"]
    assert run("policy", "show", token=token)[1] == out
    for command in (
        ["check", str(file)],
        ["apply", str(file), "--yes"],
        ["rollback", "0", "--yes"],
        ["history"],
        ["show", "1"],
        ["diff"],
    ):
        status, out, err = run("policy", *command, token=token)
        assert (status, out, len(err.splitlines())) == (1, "", 1)
        assert "admin" in err
    assert number(run) == now


def test_admin_sees_all_queues(run: Run, file: Path) -> None:
    """What each is given, and what it holds."""
    begin(run, file)
    names = [line.split()[0] for line in run("queues")[1].splitlines()]
    assert names == ["QUEUE", "vision", "others"]
    [vision, _] = json.loads(run("queues", "--json")[1])
    assert (vision["weight"], vision["held"], vision["users"]) == (2, 0, ["ann"])


def test_rules_are_tried_on_what_was_seen(run: Run, tmp_path: Path) -> None:
    """A pool that has seen nothing yet would have taken nothing; an unknown key is named."""
    file = tmp_path / "policy.toml"
    file.write_text(TEAMS + '[[idle.rules]]\nname = "all"\n')
    status, told, _ = run("policy", "dry-run", str(file), "--days", "7")
    assert (status, told.splitlines()[0]) == (0, "Nothing would have been taken.")
    assert "in 7 days: taken 0 times" in told
    file.write_text(TEAMS + '[[idle.rules]]\nnames = "all"\n')
    status, _, problem = run("policy", "dry-run", str(file))
    assert status != 0
    assert "idle.rules.0.name: field required. See line 10." in problem
