"""What a worker's end means: distributed's reason as an exit code and as a sentence. Pure.

Called by `worker` when its worker has closed. A reason that is not known here is a failure, so that
the agent does not fork for ever what ends for ever.
"""

from .problems import ExitCode

STOPPED = "stopped by its agent"
UNKNOWN = "its agent does not know it"
_GOOD = {
    STOPPED,
    # As `client.restart()` and a retirement do it.
    "scheduler-remove-worker",
    "scheduler-close-worker",
    "worker-close",
    "worker-close-gracefully",
    # Its scheduler has given it up, and takes a new one in its place.
    "worker-heartbeat-missing",
}
_SCHEDULER_GONE = {
    "scheduler-close": "the claim's scheduler has ended",
    "worker-handle-scheduler-connection-broken": "the claim's scheduler is gone",
}


def exit_code_of(reason: str) -> ExitCode:
    """The exit code that tells the agent whether this end was a failure."""
    if reason in _GOOD:
        return ExitCode.GOOD
    if reason in _SCHEDULER_GONE:
        return ExitCode.SCHEDULER_GONE
    return ExitCode.UNKNOWN_TO_AGENT if reason == UNKNOWN else ExitCode.FAILED


def sentence_of(reason: str) -> str:
    """The reason in words that a user can read, where there are better ones than distributed's."""
    return _SCHEDULER_GONE.get(reason, reason)
