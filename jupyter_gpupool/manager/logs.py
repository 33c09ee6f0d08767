"""Logs on stderr: sentences for people on a terminal, JSON lines for everything else.

No secret is ever logged: tokens and keys are in fields that repr leaves out, and there is no
access log.
"""

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logs(level: str) -> None:
    """Send everything to stderr, in the form its reader wants."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(plain if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These tell of every connection and every migration step.
    for name in ("uvicorn", "alembic", "websockets"):
        logging.getLogger(name).setLevel(logging.WARNING)
