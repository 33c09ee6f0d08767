"""Whether this user may write where a pool of theirs writes."""

from pathlib import Path

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.folders import check_folders, judge_folder, look_at_folder
from jupyter_gpupool.cli.doctor.places import Kind, Place, places


def judged(place: Place, as_nobody):
    with as_nobody():
        return judge_folder(look_at_folder(place))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_closed_folder_is_a_problem(kind: Kind, open_folder: Path, as_nobody):
    """The way out is told, for each kind another one."""
    found = judged(Place(kind, open_folder / "gpupool"), as_nobody)
    assert found.severity is Severity.PROBLEM
    assert str(open_folder) in found.what
    assert "_" in found.mend or "TMPDIR" in found.mend


def test_what_lies_in_a_closed_folder_is_not_looked_for(open_folder: Path, as_nobody):
    """The closed folder is what is told."""
    closed = open_folder / "closed"
    (closed / "gpupool").mkdir(parents=True)
    closed.chmod(0)
    found = judged(Place(Kind.STATE, closed / "gpupool"), as_nobody)
    closed.chmod(0o700)
    assert f"{closed} is closed" in found.what


def test_an_open_folder_is_well(open_folder: Path, as_nobody):
    """Also one that has still to be made."""
    open_folder.chmod(0o777)
    assert judged(Place(Kind.STATE, open_folder / "a" / "b"), as_nobody).severity is Severity.WELL
    assert list(open_folder.iterdir()) == []


def test_a_file_that_another_user_left_is_a_problem(open_folder: Path, as_nobody):
    """As after a pool was once started with sudo."""
    open_folder.chmod(0o777)
    left = open_folder / "gpupool-host.log"
    left.touch(mode=0o600)
    left.chmod(0o400)
    found = judged(Place(Kind.RUNTIME, open_folder), as_nobody)
    assert (found.severity, str(left) in found.what) == (Severity.PROBLEM, True)


def test_each_place_of_a_private_pool_is_looked_at(sees, tmp_path: Path, monkeypatch):
    """State, runtime and temporary folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "run"))
    found = list(check_folders(sees()))
    assert [each.reference for each in found] == [
        "state-folder",
        "runtime-folder",
        "temporary-folder",
    ]


def test_who_uses_another_pool_needs_no_state_folder(sees, tmp_path: Path, monkeypatch):
    """Unless there is one already."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    sight = sees(environ={"GPUPOOL_URL": "https://pool.example.org"})
    assert Kind.STATE not in [place.kind for place in places(sight)]
    (tmp_path / "gpupool").mkdir()
    assert next(places(sight)) == Place(Kind.STATE, tmp_path / "gpupool")
