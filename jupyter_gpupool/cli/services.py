"""`manager`, `agent`: hands the command line over to the services' own applications.

They are imported on demand: a machine that only claims has neither of their libraries.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from jupyter_gpupool.pool.errors import BadRequest, Unavailable

_AS_IT_IS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@click.command(context_settings=_AS_IT_IS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manager(arguments: tuple[str, ...]) -> None:
    """Run the pool's manager; --help lists its options."""
    launch("manager", "jupyter_gpupool.manager.app", "ManagerApp", arguments)


@click.command(context_settings=_AS_IT_IS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def agent(arguments: tuple[str, ...]) -> None:
    """Run the agent of a host with devices; --help lists its options."""
    launch("host", "jupyter_gpupool.agent.app", "AgentApp", arguments)


def launch(extra: str, module: str, name: str, arguments: tuple[str, ...]) -> None:
    """Run a traitlets application until it ends.

    Raises:
        BadRequest: If it has no such option; traitlets would go on without it.
        Unavailable: If its libraries are not installed.
    """
    try:
        application = getattr(import_module(module), name)
        known = {"help", "help-all", "show-config", "show-config-json"}
        check_options(arguments, known | {*_names(application.aliases), *_names(application.flags)})
        # What `--help` has no need of is imported here.
        application.launch_instance(argv=list(arguments))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("jupyter_gpupool"):
            raise
        raise Unavailable(
            f"This needs {error.name}, which is not installed.",
            hint=f'Run: pip install "jupyter-gpupool[{extra}]".',
        ) from error


def check_options(arguments: Sequence[str], known: Iterable[str]) -> None:
    """Refuse an option that is misspelt. One with a dot names a setting, which traitlets checks.

    Raises:
        BadRequest: If there is no such option; the hint names the nearest.
    """
    options = set(known)
    for argument in arguments:
        name = argument.removeprefix("--").partition("=")[0]
        if not argument.startswith("--") or not name or "." in name or name in options:
            continue
        near = get_close_matches(name, options, 1)
        hint = f"Did you mean --{near[0]}?" if near else "See all of them: --help."
        raise BadRequest(f"There is no option --{name}.", field=name, hint=hint)


def _names(options: Iterable[str | tuple[str, ...]]) -> Iterator[str]:
    for option in options:
        yield from (option,) if isinstance(option, str) else option
