"""Do the kernels that Jupyter offers have jupyter_gpupool, and the same release of it?"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from jupyter_gpupool import __version__

from .finding import Finding, note, unknown, warning, well
from .sight import Sight

_ANSWER_WITHIN_S = 3.0
_MOST_ASKED = 16
_ASK = """\
from importlib.metadata import PackageNotFoundError, version
try:
    print(version("jupyter-gpupool"))
except PackageNotFoundError:
    print("none")
"""


def check_kernels(_sight: Sight) -> Iterator[Finding]:
    """Ask each kernel's Python for its version of the package."""
    if find_spec("jupyter_client") is None:
        return
    interpreters = _interpreters()
    with ThreadPoolExecutor(max_workers=max(1, len(interpreters))) as pool:
        told = dict(zip(interpreters, pool.map(_version_in, interpreters.values()), strict=True))
    yield from judge_kernels(told)


def judge_kernels(told: Mapping[str, str | None]) -> Iterator[Finding]:
    """A kernel of another release may misread the pool; one without has no magics.

    Args:
        told: Per kernel its version, "none", or None if it could not be asked.
    """
    same = [name for name, version in told.items() if version == __version__]
    if same:
        yield well("kernels", f"Of this release too: kernel {', '.join(same)}.")
    for name, version in told.items():
        if version is None:
            yield unknown(
                "kernel-silent",
                f"The Python of kernel {name} did not say which packages it has.",
                f"See whether it starts: jupyter kernelspec list; or remove {name}.",
            )
        elif version == "none":
            yield note(
                "kernel-without-package",
                f"Notebooks with kernel {name} cannot claim: jupyter_gpupool is not installed.",
                f"In its environment: pip install jupyter-gpupool=={__version__}",
            )
        elif version != __version__:
            yield warning(
                "kernel-differs",
                f"Kernel {name} has jupyter_gpupool {version}, and this environment {__version__}.",
                f"In its environment: pip install jupyter-gpupool=={__version__}",
            )


def _interpreters() -> dict[str, str]:
    """The Pythons of kernels that are not this one, by the kernel's name."""
    from jupyter_client.kernelspec import KernelSpecManager  # noqa: PLC0415 - only where Jupyter is

    specs = KernelSpecManager().get_all_specs()
    first = {name: (each["spec"].get("argv") or [""])[0] for name, each in specs.items()}
    own = {sys.executable, "python", "python3", "python{}.{}".format(*sys.version_info)}
    others = {
        name: path
        for name, path in first.items()
        if path not in own and Path(path).name.startswith("python")
    }
    return dict(list(others.items())[:_MOST_ASKED])


def _version_in(interpreter: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a kernel's own, isolated from variables and folder
            [interpreter, "-I", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ANSWER_WITHIN_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
