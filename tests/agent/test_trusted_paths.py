"""Which environments a root zygote may load: pure over what was found."""

import sys
from pathlib import Path

import pytest

from jupyter_gpupool.agent.trusted_paths import PathFacts, first_untrusted, look_at

FOLDER = 0o040000


def _facts(**changes) -> PathFacts:
    return PathFacts(**({"path": Path("/opt/x"), "uid": 0, "mode": FOLDER | 0o755} | changes))


@pytest.mark.parametrize(
    ("fact", "is_trusted"),
    [
        pytest.param(_facts(), True, id="root's alone"),
        pytest.param(_facts(uid=1000), False, id="a user's"),
        pytest.param(_facts(mode=FOLDER | 0o775), False, id="a group may write"),
        pytest.param(_facts(mode=FOLDER | 0o757), False, id="everybody may write"),
        pytest.param(_facts(mode=FOLDER | 0o1777, is_parent=True), True, id="sticky parent"),
        pytest.param(_facts(mode=FOLDER | 0o1777), False, id="sticky, but loaded from"),
        pytest.param(_facts(mode=FOLDER | 0o777, is_parent=True), False, id="open parent"),
    ],
)
def test_only_roots_own_paths_are_trusted(fact, is_trusted):
    """One path that somebody else may change is enough to refuse."""
    assert (first_untrusted([_facts(), fact]) is None) is is_trusted


def test_look_reaches_parents_folders_and_what_is_in_them(tmp_path):
    """The interpreter, what leads to it, its import folders and their first level are seen."""
    seen = {fact.path for fact in look_at(Path(sys.executable))}
    folder = Path(pytest.__file__).parent
    assert {Path("/"), Path(sys.executable), folder.parent, folder} <= seen


def test_other_interpreters_are_looked_at_without_being_run(tmp_path):
    """A stranger's Python is judged by its files: running it would be running its code."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "package").mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/false\n")
    assert site / "package" in {fact.path for fact in look_at(python)}
