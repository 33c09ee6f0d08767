"""What of a zygote's words is believed. Called by `zygote_process`.

A zygote that runs as a user may be that user's own program, and may say anything: that another
user's process is a child of its, which a root agent would then end.
"""

from jupyter_gpupool.protocol.launch import Exited, Forked, Line, Warm, decode

from .procfs import real_user_of

_MOST_LETTERS = 2000
_MOST_VERSIONS = 100


class Nonsense(Exception):
    """No zygote of ours says this."""


def hear(line: bytes, *, user: int | None) -> Line:
    """Read what a zygote says that runs as that user; None is the agent's own, who may do it all.

    Raises:
        Nonsense: If it makes no sense, or tells of a process that is somebody else's.
    """
    try:
        said = decode(line)
    except (ValueError, RecursionError) as error:
        raise Nonsense("it does not speak our language") from error
    if isinstance(said, Forked) and not (type(said.ticket) is int and _is_pid(said.pid)):
        raise Nonsense("it answers with no process")
    if isinstance(said, Exited) and not (type(said.status) is int and _is_pid(said.pid)):
        raise Nonsense("it tells the end of no process")
    if isinstance(said, Forked) and said.pid is not None and not may_be_of(said.pid, user):
        raise Nonsense(f"process {said.pid} is somebody else's")
    return _plain(said) if isinstance(said, Warm) else said


def may_be_of(pid: int, user: int | None) -> bool:
    """Whether a process may be that user's, so that a zygote of theirs may have forked it."""
    # One that has ended already is nobody's any more.
    return user is None or real_user_of(pid) in (user, None)


def _is_pid(pid: object) -> bool:
    # 0, 1 and those below would be a group, the host's first process, or all there are.
    return pid is None or (type(pid) is int and pid > 1)


def _plain(warm: Warm) -> Warm:
    versions = warm.versions.items() if isinstance(warm.versions, dict) else ()
    return Warm(
        problem=str(warm.problem)[:_MOST_LETTERS],
        versions={
            str(name)[:_MOST_LETTERS]: str(version)[:_MOST_LETTERS]
            for name, version in list(versions)[:_MOST_VERSIONS]
        },
    )
