"""What differs between two policy documents: by keys, and line by line. Pure.

Used by the manager for two revisions, and by the command line for a file and a revision.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping

from .policy_views import DiffView, KeyChange

_SAID_AT_MOST = 200


def diff(before: str, after: str, *, names: tuple[str, str]) -> DiffView:
    """Compare two documents; `names` is what they are called in the comparison line by line."""
    old, new = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(old, new, *names, lineterm="")
    return DiffView(changes=tuple(_changes(before, after)), text="\n".join(lines))


def _changes(before: str, after: str) -> Iterator[KeyChange]:
    old, new = _values(before), _values(after)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield KeyChange(key=key, before=old.get(key), after=new.get(key))


def _values(source: str) -> dict[str, str]:
    """Each value of a document by its key, as it would be written; none of one that is no TOML."""
    try:
        return dict(_flat("", tomllib.loads(source)))
    except (ValueError, RecursionError):
        return {}


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}" if key else str(name), inner)
    else:
        yield key, _written(value)


def _written(value: object) -> str:
    """A value as TOML has it, on one line, and not for ever."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, list):
        text = f"[{', '.join(map(_written, value))}]"
    elif isinstance(value, Mapping):
        pairs = (f"{name} = {_written(inner)}" for name, inner in value.items())
        text = f"{{{', '.join(pairs)}}}"
    else:
        text = str(value)
    return text if len(text) <= _SAID_AT_MOST else f"{text[:_SAID_AT_MOST]}…"
