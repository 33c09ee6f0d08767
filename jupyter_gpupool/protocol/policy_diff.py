"""What differs between two policy documents: by keys, and line by line. Pure.

Used by the manager for two revisions, and by the command line for a file and a revision.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence

from jupyter_gpupool.pool.errors import BadRequest

from .policy_text import read_toml
from .policy_views import DiffView, KeyChange


def diff(before: str, after: str, *, names: tuple[str, str]) -> DiffView:
    """Compare two documents: line by line under these names, and by key if both are TOML."""
    old, new = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(old, new, *names, lineterm="")
    return DiffView(changes=tuple(_changes(before, after)), text="\n".join(lines))


def _changes(before: str, after: str) -> Iterator[KeyChange]:
    old, new = _values(before), _values(after)
    if old is None or new is None:
        return
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield KeyChange(key=key, before=old.get(key), after=new.get(key))


def _values(source: str) -> dict[str, str] | None:
    """Each value of a document by its key, as it would be written; None if it is no TOML."""
    try:
        return dict(_flat("", read_toml(source)))
    except (BadRequest, RecursionError):
        return None


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Down to what is no table; an entry of a list of tables goes by its name, or by its number."""
    entries = _entries(value)
    if not entries:
        yield key, _written(value)
    for name, inner in entries:
        yield from _flat(f"{key}.{name}" if key else name, inner)


def _entries(value: object) -> Sequence[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(name), inner) for name, inner in value.items()]
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        names = [str(each.get("name", number)) for number, each in enumerate(value)]
        is_named = len(set(names)) == len(names)
        return [(names[n] if is_named else str(n), each) for n, each in enumerate(value)]
    return []


def _written(value: object) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return "{}" if isinstance(value, Mapping) else str(value)
