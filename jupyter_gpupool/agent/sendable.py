"""Makes text that can be sent and written. Pure.

Called by `link` for a report that cannot be encoded, and by `records` for what was once written.
Half a surrogate somewhere in a user's sentence must not keep a whole host from speaking.
"""

from typing import Any

from jupyter_gpupool.protocol.link import HostReport


def sendable(text: str) -> str:
    """The text with what no encoding can bear replaced."""
    return text.replace("\0", "?").encode(errors="replace").decode()


def sendable_report(report: HostReport) -> HostReport:
    """The report with all its texts made sendable."""
    return HostReport.model_validate(_cleaned(report.model_dump()))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_cleaned(each) for each in value)
    return value
