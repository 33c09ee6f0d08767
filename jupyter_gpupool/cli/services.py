"""`manager`, `agent`: hands the command line over to the services' own applications.

They are imported on demand: a machine that only claims has neither of their libraries.
"""

from importlib import import_module

import click

from jupyter_gpupool.pool.errors import Unavailable

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
        Unavailable: If its libraries are not installed.
    """
    try:
        application = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("jupyter_gpupool"):
            raise
        raise Unavailable(
            f"This needs {error.name}, which is not installed.",
            hint=f'Run: pip install "jupyter-gpupool[{extra}]".',
        ) from error
    application.launch_instance(argv=list(arguments))
