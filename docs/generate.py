"""Writes the reference pages from the code: configuration.md, api.md, cli.md and magics.md.

And policy.schema.json, by which an editor completes and checks a policy file while it is written.

    python docs/generate.py [FOLDER]

The tests check that what lies here is what this would write.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from fastapi import FastAPI
from fastapi.routing import APIWebSocketRoute
from starlette.routing import BaseRoute
from traitlets import TraitType
from traitlets.config import Application

from jupyter_gpupool.agent.app import AgentApp
from jupyter_gpupool.cli.root import root
from jupyter_gpupool.manager.api.application import make_application
from jupyter_gpupool.manager.app import ManagerApp
from jupyter_gpupool.notebook.magics.cell_command import cell_command
from jupyter_gpupool.notebook.magics.commands import commands
from jupyter_gpupool.protocol.api import API
from jupyter_gpupool.protocol.policy import PolicyDocument
from jupyter_gpupool.server.app import GpuPoolExtension

HERE = Path(__file__).parent
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NOTE = "<!-- Written by docs/generate.py: change the code's own words instead. -->\n"
_CONFIGURATION = """\
Settings of the manager, the agent and the Jupyter server extension. Each may stand in
`jupyter_gpupool_config.py` in a Jupyter configuration folder, such as `c.ManagerApp.port = 7866`,
or on the command line, such as `--ManagerApp.port=7866`; some have a short option."""
_API = f"""\
A bearer token in `Authorization`; rights, idempotency and errors stand in
[architecture.md](architecture.md). The schema of every body is in `{API}/openapi.json`."""

_MAGICS = """\
Every kernel has them whose Python has jupyter_gpupool: IPython loads them from
`etc/ipython/ipython_config.json` of that installation, and your own configuration stays as it is.
Where another tool has taken that file's place, `%load_ext jupyter_gpupool` does the same.

    %gpupool claim 2 --model A100        # a Dask cluster and its client: cluster, client
    seen = %gpupool status               # what is shown can be taken instead

A mistake is one line, and fails the cell. Tab completes verbs, options, models, environments and
names of claims.

A cell that begins with `%%gpupool` runs on a worker, with the variables that earlier such cells of
the same notebook left there; they outlive a restart of the kernel as long as the claim lives. Plain
Python only: no magics, no `!`. What its threads, its subprocesses and C code print is in
`%gpupool log`. An interrupt raises KeyboardInterrupt in it, also while it sleeps; within a call of
C that takes long, it comes when that returns, and a second interrupt starts the worker anew."""


def configuration() -> str:
    """Every setting of the services, with its default."""
    parts = [
        "# Configuration",
        _NOTE,
        _CONFIGURATION,
    ]
    for app in (ManagerApp, AgentApp, GpuPoolExtension):
        parts += ["", f"## {app.__name__}", "", str(app.description), ""]
        parts += ["| setting | option | meaning |", "| --- | --- | --- |"]
        parts += [_setting(app, trait) for trait in _own_traits(app).values()]
    return "\n".join(parts) + "\n"


def api() -> str:
    """Every route, with its first line."""
    app = make_application(None)  # type: ignore[arg-type] # only its routes are read
    rows = sorted({*_http(app), *_sockets(app.routes, "")})
    parts = [
        "# HTTP API",
        _NOTE,
        _API,
        "",
        "| path | method | what it does |",
        "| --- | --- | --- |",
        *(f"| `{path}` | {method} | {text} |" for path, method, text in rows),
    ]
    return "\n".join(parts) + "\n"


def cli() -> str:
    """Every command with its own help."""
    parts = ["# Command line", _NOTE, inspect.cleandoc(root.help or "")]
    parts += _helps(_commands(root, "jupyter gpupool"))
    return "\n".join(parts) + "\n"


def magics() -> str:
    """What a cell may begin with, each with its own help."""
    parts = ["# Magics", _NOTE, _MAGICS]
    parts += _helps([*_commands(commands, "%gpupool"), ("%%gpupool", cell_command)])
    return "\n".join(parts) + "\n"


def policy_schema() -> str:
    """The JSON schema of the policy document."""
    schema = {"$schema": _DIALECT, **PolicyDocument.model_json_schema()}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration,
    "api.md": api,
    "cli.md": cli,
    "magics.md": magics,
    "policy.schema.json": policy_schema,
}


def main(folder: Path) -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (folder / name).write_text(page())


def _helps(named: Iterable[tuple[str, click.Command]]) -> Iterator[str]:
    for name, command in named:
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
        yield from ("", f"## {name}", "", "```", command.get_help(context), "```")


def _own_traits(app: type[Application]) -> Mapping[str, TraitType[Any, Any]]:
    traits = app.class_traits(config=True)
    own = (name for name in vars(app) if name in traits)
    return {name: traits[name] for name in own}


def _setting(app: type[Application], trait: TraitType[Any, Any]) -> str:
    name = f"{app.__name__}.{trait.name}"
    targets = {_target(target): f"`--{option}`" for option, target in app.aliases.items()}
    targets |= {
        f"{app.__name__}.{setting}": f"`--{option}`"
        for option, (values, _) in app.flags.items()
        for setting in values.get(app.__name__, ())
    }
    return f"| `{name}` | {targets.get(name, '')} | {_cell(trait.help)} |"


def _target(target: Any) -> str:
    return target[0] if isinstance(target, tuple) else str(target)


def _http(app: FastAPI) -> Iterator[tuple[str, str, str]]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), _first_line(operation["description"])


def _sockets(routes: Iterable[BaseRoute], prefix: str) -> Iterator[tuple[str, str, str]]:
    for route in routes:
        if isinstance(route, APIWebSocketRoute):
            yield prefix + route.path, "WebSocket", _first_line(inspect.getdoc(route.endpoint))
        # A newer FastAPI keeps an included router whole instead of copying its routes.
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _sockets(included.routes, prefix + route.include_context.prefix)


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        yield f"{prefix} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix} {name}")


def _first_line(text: str | None) -> str:
    return _cell((text or "").splitlines()[0])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
