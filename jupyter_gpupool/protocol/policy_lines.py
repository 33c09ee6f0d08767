"""In which line of a policy's text a key stands, for the sentence that refuses it.

Python's TOML parser says a line only where the text is no TOML. This looks at a text that is, so it
has to tell keys from values, and nothing more.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from jupyter_gpupool.pool.errors import BadRequest

_WORD: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|\n|[\[\]{}=.]|[^\s\"'#\[\]{}=.]+",
    re.DOTALL,
)
_SYNTAX_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")
_SYNTAX_END: Final = "(at end of document)"
_OPENS, _CLOSES, _BETWEEN = frozenset("[{"), frozenset("]}"), frozenset("[].")
_Path = tuple[str, ...]


class _Statement(NamedTuple):
    """What stands before the value: a key with its `=`, or a table's name in brackets.

    Attributes:
        brackets: 0 for a key, 1 for a table, 2 for one more table of an array.
    """

    line: int
    brackets: int
    parts: _Path


def line_of(source: str, key: str) -> int | None:
    """The line, from 1, where this key or the nearest above it begins.

    Args:
        source: A document that is TOML.
        key: Dotted, from the top of the document; "" is none.

    Returns:
        None if neither the key nor any above it stands there.
    """
    lines = _lines(source) if key else {}
    while key:
        if key in lines:
            return lines[key]
        key = key.rpartition(".")[0]
    return None


def line_of_refusal(source: str, refusal: BadRequest) -> int | None:
    """The line that a refusal of this document is about, if it is about one."""
    said = _SYNTAX_LINE.search(refusal.message)
    if said is not None:
        return int(said[1])
    if _SYNTAX_END in refusal.message:
        return len(source.splitlines()) or 1
    return line_of(source, refusal.field)


def _lines(source: str) -> dict[str, int]:
    lines: dict[str, int] = {}
    for path, line in _paths(_statements(source)):
        # A table may be named by its first key alone: what is above stands where it begins.
        for length in range(1, len(path) + 1):
            lines.setdefault(".".join(path[:length]), line)
    return lines


def _paths(statements: Iterable[_Statement]) -> Iterator[tuple[_Path, int]]:
    """Every key and table from the top of the document, elements of arrays by their number."""
    table, counts = _Path(), dict[_Path, int]()
    for line, brackets, parts in statements:
        if brackets == 2:  # noqa: PLR2004 - as many as an array's table has
            above = _numbered(parts[:-1], counts)
            array = (*above, parts[-1])
            counts[array] = counts.get(array, -1) + 1
        if brackets:
            table = _numbered(parts, counts)
            yield table, line
        else:
            yield (*table, *parts), line


def _numbered(parts: _Path, counts: dict[_Path, int]) -> _Path:
    """Below the name of an array of tables, its last element is meant."""
    path = _Path()
    for part in parts:
        path = (*path, part)
        if path in counts:
            path = (*path, str(counts[path]))
    return path


def _statements(source: str) -> Iterator[_Statement]:
    for line, words in _sentences(source):
        brackets = words.index(next(word for word in words if word != "["))
        key = words if brackets else words[: words.index("=")]
        yield _Statement(
            line, brackets, tuple(_unquoted(word) for word in key if word not in _BETWEEN)
        )


def _sentences(source: str) -> Iterator[tuple[int, list[str]]]:
    """The words of each key with its value, or of each table's name, and the line they begin in.

    Either ends with its line, unless a bracket is open.
    """
    line, began, depth = 1, 1, 0
    words: list[str] = []
    for found in _WORD.finditer(source):
        word = found[0]
        if word == "\n" and not depth and words:
            yield began, words
            words = []
        elif word[0] not in "#\n":
            began = began if words else line
            words.append(word)
            depth += (word in _OPENS) - (word in _CLOSES)
        line += word.count("\n")
    if words:
        yield began, words


def _unquoted(word: str) -> str:
    return word[1:-1] if word[0] in "\"'" else word
