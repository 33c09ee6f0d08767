"""Makes text that can be sent and written. Pure.

Called by `link` for a report that cannot be encoded or is too large, and by `records` for what was
once written. Neither half a surrogate in a user's sentence nor a scheduler that says very much
must keep a whole host from speaking.
"""

from typing import Any

from jupyter_gpupool.protocol.link import HostReport, SchedulerReport

_MUCH_BYTES = 4096
_SHORT_TEXT = 200


def sendable(text: str) -> str:
    """The text with what no encoding can bear replaced."""
    return text.replace("\0", "?").encode(errors="replace").decode()


def sendable_report(report: HostReport) -> HostReport:
    """The report with all its texts made sendable."""
    return HostReport.model_validate(_cleaned(report.model_dump()))


def short_report(report: HostReport) -> HostReport:
    """The report without the details of those schedulers that say much; all the others keep theirs.

    What is left out is unknown to the manager, so it changes nothing there.
    """
    schedulers = tuple(_shortened(each) for each in report.schedulers)
    return report.model_copy(update={"schedulers": schedulers})


def _shortened(said: SchedulerReport) -> SchedulerReport:
    if len(said.model_dump_json().encode()) <= _MUCH_BYTES:
        return said
    problem = said.problem[:_SHORT_TEXT]
    less = {"retiring": (), "retired": (), "keeping": None, "problem": problem}
    return said.model_copy(update=less)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_cleaned(each) for each in value)
    return value
