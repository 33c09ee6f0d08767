"""Is this environment's Jupyter set up: the server's extension, the magics, the live card?"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from jupyter_core.paths import jupyter_config_path

from .finding import Finding, note, warning, well
from .sight import Sight

_PACKAGE = "jupyter_gpupool"
_INSTALL_AGAIN = "Run: pip install --force-reinstall --no-deps jupyter-gpupool"


@dataclass(frozen=True, slots=True, kw_only=True)
class JupyterFacts:
    """What of Jupyter is here.

    Attributes:
        has_server, has_kernel: Jupyter server, IPython is installed.
        is_enabled: The server loads our extension; None if its configuration does not say.
        loads_magics: Every IPython of this environment loads our magics.
        missing_for_card: Packages that the live card needs.
    """

    has_server: bool = False
    is_enabled: bool | None = None
    has_kernel: bool = False
    loads_magics: bool = False
    missing_for_card: tuple[str, ...] = ()


def check_jupyter(_sight: Sight) -> Iterator[Finding]:
    """Read Jupyter's and IPython's configuration, as they would."""
    yield from judge_jupyter(look_at_jupyter())


def judge_jupyter(facts: JupyterFacts) -> Iterator[Finding]:
    """What is not installed may be meant to be in another environment."""
    if facts.has_server:
        yield _judge_server(facts)
    if facts.has_kernel:
        yield _judge_magics(facts)
        yield _judge_card(facts)
    if not facts.has_server and not facts.has_kernel:
        yield note(
            "no-jupyter",
            "This Python has neither a Jupyter server nor IPython.",
            "Nothing for scripts; run the doctor in the environments of your server and kernel.",
        )


def look_at_jupyter() -> JupyterFacts:
    """Find out what is installed; only the server's own reader of its configuration is imported."""
    has_server = find_spec("jupyter_server") is not None
    return JupyterFacts(
        has_server=has_server,
        is_enabled=_is_enabled() if has_server else None,
        has_kernel=find_spec("IPython") is not None,
        loads_magics=loads_magics(ipython_folders()),
        missing_for_card=tuple(
            name for name in ("anywidget", "ipywidgets") if find_spec(name) is None
        ),
    )


def ipython_folders() -> tuple[Path, ...]:
    """Where IPython looks for what an environment or a system sets for all."""
    return tuple(Path(root, "etc", "ipython") for root in (sys.prefix, "/usr/local", "/"))


def loads_magics(folders: tuple[Path, ...]) -> bool:
    """Whether a file in one of them has IPython load our magics."""
    return any(_PACKAGE in _extensions(each / "ipython_config.json") for each in folders)


def _extensions(path: Path) -> tuple[str, ...]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        names = tuple(told["InteractiveShellApp"]["extra_extensions"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    # Its magics may be a module of ours.
    return tuple(str(name).partition(".")[0] for name in names)


def _is_enabled() -> bool | None:
    from jupyter_server.extension.config import (  # noqa: PLC0415 - only where a server is
        ExtensionConfigManager,
    )

    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    extensions: dict[str, bool] = manager.get_jpserver_extensions()  # type: ignore[no-untyped-call] # its package has no types
    return extensions.get(_PACKAGE)


def _judge_server(facts: JupyterFacts) -> Finding:
    if facts.is_enabled:
        return well("server-extension", "The Jupyter server loads the gpupool extension.")
    if facts.is_enabled is None:
        what = "The Jupyter server does not know of the gpupool extension."
        return warning("server-extension-missing", what, _INSTALL_AGAIN)
    return warning(
        "server-extension-disabled",
        "The gpupool extension of the Jupyter server is disabled.",
        f"Run: jupyter server extension enable {_PACKAGE}; then start the server anew.",
    )


def _judge_magics(facts: JupyterFacts) -> Finding:
    if facts.loads_magics:
        return well("magics", "Kernels of this environment know %gpupool from the start.")
    return warning(
        "magics-not-loaded",
        "Kernels of this environment do not know %gpupool from the start.",
        f"{_INSTALL_AGAIN}; until then, in a notebook: %load_ext {_PACKAGE}",
    )


def _judge_card(facts: JupyterFacts) -> Finding:
    if not facts.missing_for_card:
        return well("card", "Notebooks can show the live card of a claim.")
    missing = " and ".join(facts.missing_for_card)
    return note(
        "no-live-card",
        f"Notebooks show a claim as text, for this environment lacks {missing}.",
        f"Run: pip install {' '.join(facts.missing_for_card)}",
    )
