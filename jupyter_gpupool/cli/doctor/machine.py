"""Does the system show and allow what a pool relies on: loopback, processes, control groups?"""

import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from .finding import Finding, note, problem, well
from .mounts import Mount, all_mounts
from .sight import Sight

_OPEN = ("hidepid=0", "hidepid=off")


def check_loopback(_sight: Sight) -> Iterator[Finding]:
    """Connect to ourselves."""
    yield judge_loopback(loopback_failure())


def judge_loopback(failure: str) -> Finding:
    """A pool of one machine talks over 127.0.0.1 alone."""
    if not failure:
        return well("loopback", "Processes can talk over 127.0.0.1.")
    return problem(
        "no-loopback",
        f"Processes cannot talk over 127.0.0.1: {failure}.",
        "Run as root: ip link set lo up; a container needs a network of its own with IPv4.",
    )


def loopback_failure() -> str:
    """Why a connection to 127.0.0.1 fails, else ""."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()[:2], timeout=1.0).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def check_processes(_sight: Sight) -> Iterator[Finding]:
    """See how /proc is mounted."""
    yield judge_processes(list(all_mounts()), is_root=os.geteuid() == 0)


def judge_processes(mounts: Sequence[Mount], *, is_root: bool) -> Finding:
    """Root sees everything in any case."""
    proc = next((mount for mount in reversed(mounts) if mount.folder == Path("/proc")), None)
    options = () if proc is None else proc.options
    hidden = [each for each in options if each.startswith("hidepid=") and each not in _OPEN]
    if is_root or not hidden:
        return well("processes-seen", "Processes of all users can be seen.")
    return note(
        "processes-hidden",
        f"Processes of other users are hidden from you (/proc has {hidden[0]}).",
        "Nothing; who uses a device outside your pool is shown without a name.",
    )


def check_control_groups(_sight: Sight) -> Iterator[Finding]:
    """Look where a root agent would make a group for each process."""
    if os.geteuid() == 0:
        yield judge_control_groups(_agents_group())


def judge_control_groups(group: Path | None) -> Finding:
    """Without them the agent still finds what it started, by other marks."""
    if group is not None and os.access(group, os.W_OK, effective_ids=True):
        return well("control-groups", f"A root agent can make control groups in {group}.")
    return note(
        "no-control-groups",
        "A root agent cannot make control groups here, so memory and processes have no hard limit.",
        "Mount /sys/fs/cgroup for writing; in a container, give it the right to.",
    )


def _agents_group() -> Path | None:
    try:
        from jupyter_gpupool.agent.control_groups import ControlGroups  # noqa: PLC0415 - a service
    except ModuleNotFoundError:
        return None
    from jupyter_gpupool.agent.keys import ProcessKey  # noqa: PLC0415 - as above
    from jupyter_gpupool.pool.ids import ClaimId  # noqa: PLC0415 - as above

    folder = ControlGroups("doctor").folder(ProcessKey(ClaimId("none"), 0))
    return None if folder is None else folder.parents[1]
