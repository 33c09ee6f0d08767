"""The document that an admin names: a file, or standard input."""

import sys
from pathlib import Path

from jupyter_gpupool.pool.errors import BadRequest

STANDARD_INPUT = "-"


def read_document(name: str) -> str:
    """What is in the file.

    Raises:
        BadRequest: If it cannot be read.
    """
    try:
        if name == STANDARD_INPUT:
            # Its lines end as those of a file that Python reads.
            return sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n")
        return Path(name).expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequest(f"The file {name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{shown(name)} is no UTF-8 text.") from error


def shown(name: str) -> str:
    """What a document is called in sentences about it."""
    return "standard input" if name == STANDARD_INPUT else name
