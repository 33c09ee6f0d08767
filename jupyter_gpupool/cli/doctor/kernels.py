"""Do the kernels that Jupyter offers have jupyter_gpupool, and the same release of it?"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jupyter_core.paths import jupyter_path

from jupyter_gpupool import __version__

from .finding import Finding, note, unknown, warning, well
from .sight import Sight

_ANSWER_WITHIN_S = 3.0
_MOST_ASKED = 16
_SPEC = "*/kernel.json"
"""Read here: jupyter_client would do it, and import IPython, which takes a second."""
_ASK = """\
from importlib.metadata import PackageNotFoundError, version
try:
    print(version("jupyter-gpupool"))
except PackageNotFoundError:
    print("none")
"""


def check_kernels(_sight: Sight) -> Iterator[Finding]:
    """Ask each kernel's Python for its version of the package."""
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
    own = {sys.executable, "python", "python3", "python{}.{}".format(*sys.version_info)}
    specs = (path for folder in jupyter_path("kernels") for path in Path(folder).glob(_SPEC))
    # The first folder that has a kernel of a name is the one that counts.
    first = {spec.parent.name: _interpreter(spec) for spec in reversed(list(specs))}
    is_other = {name: path for name, path in first.items() if path and path not in own}
    return dict(list(is_other.items())[:_MOST_ASKED])


def _interpreter(spec: Path) -> str:
    """The Python that a kernel is started with; "" if it is none, or cannot be read."""
    try:
        path = str(json.loads(spec.read_text(encoding="utf-8"))["argv"][0])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    return path if Path(path).name.startswith("python") else ""


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
