"""On which line of a TOML document a key stands, for whoever has to mend it.

Python's parser keeps no lines. A key stands where the document, read line by line from its
beginning, first holds it; the parser itself is asked, so strings and tables of any form are read
as it reads them.
"""

import tomllib
from collections.abc import Mapping, Sequence

Path = tuple[str | int, ...]


def line_of(text: str, key: str) -> int | None:
    """The line on which a dotted key begins, else the innermost table above it that is there.

    Args:
        text: A document without errors.
        key: Names joined by dots, and numbers of a list's entries from 0.

    Returns:
        Counted from 1; None if nothing of the key is there.
    """
    path = _there(tomllib.loads(text), key)
    if not path:
        return None
    lines = text.split("\n")
    below, upto = 0, len(lines)
    while upto - below > 1:
        middle = (below + upto) // 2
        length, read = _read(lines, middle)
        below, upto = (below, length) if _holds(read, path) else (middle, upto)
    # What the shorter document had in whole ended there: the key's own statement begins after it.
    return _read(lines, upto - 1)[0] + 1


def _there(value: object, key: str) -> Path:
    """The part of a key that exists; names may hold dots, so the longest is tried first."""
    if isinstance(value, Mapping):
        names: Sequence[str] = sorted(value, key=len, reverse=True)
    elif isinstance(value, list):
        names = [str(number) for number in range(len(value))]
    else:
        return ()
    for name in names:
        if key == name or key.startswith(f"{name}."):
            step = int(name) if isinstance(value, list) else name
            return (step, *_there(_at(value, step), key[len(name) + 1 :]))
    return ()


def _at(value: object, step: str | int) -> object:
    if isinstance(value, Mapping):
        return value.get(step)
    is_there = isinstance(value, list) and isinstance(step, int) and step < len(value)
    return value[step] if is_there else None  # type: ignore[index] # a list, as was just asked


def _holds(value: object, path: Path) -> bool:
    for step in path:
        value = _at(value, step)
    return value is not None


def _read(lines: Sequence[str], count: int) -> tuple[int, Mapping[str, object]]:
    """Read the first lines, fewer if they end within a text or a list; say how many."""
    for length in range(count, 0, -1):
        try:
            return length, tomllib.loads("\n".join(lines[:length]))
        except tomllib.TOMLDecodeError:
            continue
    return 0, {}
