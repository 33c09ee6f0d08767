"""The other Pythons that Jupyter offers as kernels."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpupool import __version__
from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.kernels import check_kernels, judge_kernels


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Offer a kernel to Jupyter, given its Python."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))

    def add(name: str, python: Path) -> None:
        folder = tmp_path / "kernels" / name
        folder.mkdir(parents=True)
        spec = {
            "argv": [str(python), "-m", "ipykernel"],
            "display_name": name,
            "language": "python",
        }
        (folder / "kernel.json").write_text(json.dumps(spec))

    return add


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def about(name: str, sight) -> list[Severity]:
    return [found.severity for found in check_kernels(sight) if f"kernel {name}" in found.what]


def test_a_kernel_without_the_package_is_a_note(install, bare_python: Path, sees):
    """Its own Python is asked."""
    install("bare", bare_python)
    assert about("bare", sees()) == [Severity.NOTE]


def test_a_kernel_whose_python_is_gone_is_unknown(install, tmp_path: Path, sees):
    """As after its environment was removed."""
    install("gone", tmp_path / "none" / "bin" / "python")
    assert about("gone", sees()) == [Severity.UNKNOWN]


def test_a_damaged_kernelspec_is_passed_over(install, bare_python: Path, tmp_path: Path, sees):
    """Jupyter does so too."""
    install("bare", bare_python)
    (tmp_path / "kernels" / "bare" / "kernel.json").write_text('{"argv": []}')
    assert about("bare", sees()) == []


def test_this_environments_own_kernel_is_not_asked(install, sees):
    """What is true of it is told elsewhere."""
    install("own", Path(sys.executable))
    assert about("own", sees()) == []


@pytest.mark.parametrize(
    ("version", "severity"), [(__version__, Severity.WELL), ("0.0.1", Severity.WARNING)]
)
def test_a_kernel_of_another_release_is_a_warning(version: str, severity: Severity):
    """Both versions are told."""
    (found,) = judge_kernels({"other": version})
    assert (found.severity, version in found.what or severity is Severity.WELL) == (severity, True)
