"""Modules beside a notebook: found, and importable where its claim runs."""

import importlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import pytest

from jupyter_gpupool.notebook.modules import modules_beside
from jupyter_gpupool.notebook.modules_plugin import ModulesBeside, fingerprint

LARGE = 11 * 10**6


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a notebook in it, from which a kernel runs."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    (folder / "analysis.ipynb").write_text("{}")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    return folder


def test_modules_and_packages_are_found_and_nothing_else(notebook: Path) -> None:
    """Data stays where it is, and so does what is no package."""
    for name in ("mine.py", "pack/__init__.py", "pack/deep/__init__.py", "pack/deep/x.py"):
        _write(notebook / name)
    for name in ("data.csv", "pack/data.bin", "notes/old.py", ".hidden/__init__.py"):
        _write(notebook / name)
    found = modules_beside()
    assert found is not None
    assert _names(found) == {
        "mine.py",
        "pack/__init__.py",
        "pack/deep/__init__.py",
        "pack/deep/x.py",
    }


def test_folder_without_modules_costs_nothing(notebook: Path) -> None:
    """There is nothing to tell the claim."""
    assert modules_beside() is None


def test_folder_that_is_gone_is_no_error(notebook: Path) -> None:
    """A kernel may outlive its folder."""
    (notebook / "analysis.ipynb").unlink()
    notebook.rmdir()
    assert modules_beside() is None


def test_installed_packages_are_nobodys_notebook(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command's own folder is not sent about."""
    monkeypatch.chdir(Path(pytest.__file__).parent)
    assert Path("__init__.py").exists()
    assert modules_beside() is None


def test_folder_that_can_be_read_is_used_itself(notebook: Path, tmp_path: Path) -> None:
    """So that a later edit counts."""
    _write(notebook / "mine.py")
    found = modules_beside()
    assert found is not None
    assert found.make_importable(str(tmp_path)) == str(notebook)


def test_copy_is_used_where_the_files_are_others(notebook: Path, tmp_path: Path) -> None:
    """A folder of the same name on another host is not the same."""
    _write(notebook / "beside_elsewhere.py", "ANSWER = 42")
    found = modules_beside()
    assert found is not None
    _write(notebook / "beside_elsewhere.py", "ANSWER = 'quite another'")
    sys.path.remove("")
    assert found.make_importable(str(tmp_path)).endswith(".zip")
    assert importlib.import_module("beside_elsewhere").ANSWER == 42


def test_too_large_modules_are_not_sent(notebook: Path, tmp_path: Path) -> None:
    """Only where their folder can be read they are of use."""
    _write(notebook / "large.py", "#" * LARGE)
    found = modules_beside()
    assert found is not None
    assert found.make_importable(str(tmp_path)) == str(notebook)
    (notebook / "large.py").unlink()
    assert found.make_importable(str(tmp_path)) == ""


def test_fingerprint_tells_an_edit(notebook: Path) -> None:
    """Same name, same size, another time."""
    _write(notebook / "mine.py", "A = 1")
    before = fingerprint(str(notebook))
    os.utime(notebook / "mine.py", ns=(1, 1))
    assert fingerprint(str(notebook)) not in ("", before)


_SCRIPT = """
import jupyter_gpupool as gpupool
import mine
with gpupool.claim(1) as cluster, cluster.get_client() as client:
    print(client.submit(mine.double, 21).result())
    cluster.scale(2)
    cluster.wait_for_workers(2)
    def read():
        import mine
        return mine.double(2)
    print(sorted(client.run(read).values()))
"""


@pytest.mark.e2e
def test_claim_imports_what_lies_beside_the_script(
    tmp_path: Path, script_environment: dict[str, str], pool: Callable[..., object]
) -> None:
    """On the scheduler, on its worker, and on one that comes later."""
    _write(tmp_path / "mine.py", "def double(number):\n    return 2 * number\n")
    _write(tmp_path / "script.py", _SCRIPT)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        env=script_environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["42", "[4, 4]"], done.stderr


def _write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _names(found: ModulesBeside) -> set[str]:
    assert found.copy is not None
    return set(zipfile.ZipFile(BytesIO(found.copy)).namelist())
