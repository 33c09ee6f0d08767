"""May a claim run in the environment of the kernel that asked for it?

Called by `environments` before the first process there. It is the user who has to be able to run
that interpreter, and who is asked: what an agent with more rights could do is no answer.
"""

from pathlib import Path

from jupyter_gpupool.pool.errors import Conflict, NotAllowed

from .probing import CannotRun, probe
from .zygotes import Identity


async def check_kernels_own(interpreter: Path, identity: Identity | None) -> None:
    """See that workers of that user can run there; None is the agent's own user.

    Raises:
        NotAllowed: If that user may not run it.
        Conflict: If it is no Python, or lacks what workers need.
    """
    try:
        probed = await probe(interpreter, identity)
    except CannotRun as error:
        raise NotAllowed(
            f"The kernel's interpreter {interpreter} cannot be run on this host: {error}.",
            hint="Let the user of the claim read it and all folders above it,"
            " or name another environment.",
        ) from error
    if probed.problem:
        raise Conflict(
            f"The kernel's interpreter {interpreter} cannot run workers: {probed.problem}."
        )
