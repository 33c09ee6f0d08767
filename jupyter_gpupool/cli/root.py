"""The root of all commands, and the one place where an error becomes a line and an exit status.

0 is success, 1 what the pool says no to, 2 a command that makes no sense, 130 Ctrl-C,
143 SIGTERM, 129 SIGHUP; `doctor` says how bad it is.
"""

import os
import sys
from collections.abc import Sequence

import click

from jupyter_gpupool import __version__
from jupyter_gpupool.notebook.command_line import Commands, mistake_in_words
from jupyter_gpupool.pool.errors import BadRequest, PoolError

from .claims import claim, claims, release, scale
from .demo import demo
from .doctor.command import doctor
from .estimate import estimate
from .events import events
from .hibernating import hibernate, resume
from .policy.command import policy
from .queues import queues
from .reservations import reservations, reserve, unreserve
from .services import agent, manager
from .status import devices, hosts, status
from .stop import stop
from .stopping import Stopped
from .tokens import token
from .usage import usage
from .using import environments, explain, keep, log

_NAME = "jupyter gpupool"
_POOL_ERROR = 1
_USAGE = 2
_INTERRUPTED = 130
_BY_SIGNAL = 128


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=_NAME)
def root() -> None:
    """One pool of all your GPUs, claimed in a fraction of a second.

    Which pool: GPUPOOL_URL with GPUPOOL_TOKEN or GPUPOOL_TOKEN_FILE, and GPUPOOL_CA for a private
    authority; else your own embedded pool on this machine, started when it is needed.
    """


for _command in (
    status,
    claim,
    claims,
    scale,
    release,
    hibernate,
    resume,
    estimate,
    explain,
    log,
    keep,
    hosts,
    devices,
    environments,
    events,
    reserve,
    reservations,
    unreserve,
    queues,
    usage,
    policy,
    token,
    demo,
    doctor,
    stop,
    manager,
    agent,
):
    root.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; a user's mistake is never a traceback."""
    try:
        exit_status = root.main(args=list(arguments), prog_name=_NAME, standalone_mode=False)
    except PoolError as error:
        _complain(error.message, error.hint)
        return _USAGE if isinstance(error, BadRequest) else _POOL_ERROR
    except click.Abort:
        _complain("Interrupted.")
        return _INTERRUPTED
    except Stopped as stopped:
        return _BY_SIGNAL + stopped.signum
    except click.ClickException as error:
        _tell(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return exit_status if isinstance(exit_status, int) else 0


def _tell(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        _complain(mistake_in_words(error, _NAME))


def _complain(message: str, hint: str = "") -> None:
    text = " ".join(f"{message} {hint}".split())
    click.echo(f"{_NAME}: {text}", err=True)
