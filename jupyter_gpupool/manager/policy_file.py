"""The file in which an admin keeps the policy, as text.

Called by `app.py` before anything is opened; what is in it is judged when it is applied. The
API asks what the next start would make of it.
"""

from pathlib import Path

from jupyter_gpupool.pool.errors import BadRequest


def read_policy_file(path: str) -> str:
    """The document, or "" if no file is named.

    Raises:
        BadRequest: If it cannot be read, or is empty: that says neither this policy nor none.
    """
    if not path:
        return ""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise BadRequest(f"The policy file {path} cannot be read: {why}.") from error
    if not text.strip():
        raise BadRequest(f"The policy file {path} is empty.")
    return text


def at_next_start(path: str, source: str) -> str:
    """What an admin should know of the file when this document is in force; "" if nothing.

    Args:
        path: The file that the manager was started with; "" is none.
        source: The document in force.
    """
    try:
        text = read_policy_file(path)
    except BadRequest as error:
        return f"{error.message.rstrip('.')}, so the manager could not be started again with it."
    if not path or text == source:
        return ""
    return (
        f"The manager's policy file {path} says something else; at its next start the manager"
        " applies that file."
    )
