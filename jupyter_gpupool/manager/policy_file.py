"""The file in which an admin keeps the policy, as text.

Called by `app.py` before anything is opened; what is in it is judged when it is applied.
"""

from pathlib import Path

from jupyter_gpupool.pool.errors import BadRequest


def read_policy_file(path: str) -> str:
    """The document, or "" if no file is named.

    Raises:
        BadRequest: If it cannot be read.
    """
    if not path:
        return ""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise BadRequest(f"The policy file {path} cannot be read: {why}.") from error
