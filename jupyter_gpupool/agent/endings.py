"""What becomes of a scheduler or worker that ended by itself. Pure.

Called by `carry_out` once nothing of the process is left. A scheduler is never started again: its
claim's futures died with it. A worker that was handing over has retired, and so has a holder that
its scheduler let go; any other is judged by `restarts`.
"""

from dataclasses import dataclass, replace

from jupyter_gpupool.protocol.launch import Role

from .process_watch import Ended
from .restarts import Verdict, after_end
from .seen import Seen, Stage, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known around an end.

    Attributes:
        retires: It was wanted to hand over and go.
        scheduler_failed: Its claim's scheduler on this host was given up.
        last_lines: The end of its log.
        now_s: Monotonic.
    """

    retires: bool
    scheduler_failed: bool
    last_lines: str
    now_s: float


def after_own_end(seen: Seen, ended: Ended, around: Circumstances) -> Seen:
    """The process after it ended by itself."""
    if seen.key.role is Role.SCHEDULER:
        return failed(seen, _story(seen, ended, around, ""), around.now_s)
    clean = not seen.killed_for and _is_clean(seen, ended)
    if around.retires or seen.retired or seen.retiring or (clean and seen.key.role is Role.HOLDER):
        return replace(seen, stage=Stage.RETIRED, registered=False)
    if around.scheduler_failed:
        return failed(seen, "Its claim's scheduler is gone.", around.now_s)
    verdict = after_end(seen.history, clean=clean, now_s=around.now_s)
    if not verdict.again:
        lost = replace(seen, history=verdict.history)
        return failed(lost, _story(seen, ended, around, verdict.reason), around.now_s)
    return _again(seen, ended, verdict, clean=clean)


def after_failed_start(seen: Seen, reason: str, *, may_work_later: bool, now_s: float) -> Seen:
    """A worker that could not be forked: counts as a crash, so it is not tried for ever."""
    if seen.key.role is Role.SCHEDULER or not may_work_later:
        return failed(seen, reason, now_s)
    verdict = after_end(seen.history, clean=False, now_s=now_s)
    after = replace(seen, history=verdict.history, problem=reason)
    return replace(after, stage=Stage.AGAIN) if verdict.again else failed(after, reason, now_s)


def _is_clean(seen: Seen, ended: Ended) -> bool:
    """Exit code 0; or, where nobody could see the code, an end that the worker announced."""
    return ended.status == 0 or (ended.status is None and bool(seen.closing))


def _again(seen: Seen, ended: Ended, verdict: Verdict, *, clean: bool) -> Seen:
    problem = (
        "" if clean else f"The {seen.key.role} {_cause(seen, ended)}; it is being started again."
    )
    return replace(
        seen, stage=Stage.AGAIN, history=verdict.history, registered=False, problem=problem
    )


def _story(seen: Seen, ended: Ended, around: Circumstances, why: str) -> str:
    sentence = f"The {seen.key.role} {_cause(seen, ended)}"
    sentence += f", and {why}." if why else "."
    return f"{sentence} Its last lines: {around.last_lines}" if around.last_lines else sentence


def _cause(seen: Seen, ended: Ended) -> str:
    said = seen.killed_for or (seen.key.role is Role.SCHEDULER and seen.problem) or seen.closing
    return f"{ended.words} ({said.rstrip('.')})" if said else ended.words
