"""The agent's log: for people on a terminal, one JSON object a line elsewhere.

Called once by `app`. Messages never hold a secret: what has one keeps it out of its repr.
"""

import json
import logging
import sys
import time
from typing import TextIO

_FOR_PEOPLE = "%(levelname).1s %(asctime)s %(message)s"


def open_journal(level: int, stream: TextIO | None = None) -> None:
    """Send all log messages of this process to standard error."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        logging.Formatter(_FOR_PEOPLE, "%H:%M:%S") if stream.isatty() else JsonLines()
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Its debug messages show headers, and with them the token.
    logging.getLogger("websockets").setLevel(max(level, logging.INFO))


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{at}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
