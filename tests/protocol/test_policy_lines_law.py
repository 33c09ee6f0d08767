"""The line of any key of any document is where Python's own parser first learns of it.

The reference asks the parser again and again; it takes far too long for real documents.
"""

import tomllib
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.protocol.policy_lines import line_of

_NAMES = st.sampled_from(["a", "b-1", '"q"', "'s'", '"x y"', '"[z]"', '"#h"', '"k=v"'])
_VALUES = st.sampled_from(
    [
        "1",
        "3.5",
        "true",
        '"text # [no] = \\" key"',
        "'it = [x]'",
        '"""one\nweight = 3\n[queues.no]\n"""',
        "'''a\n[[b]]\n'''",
        "[1, 2]",
        '[\n  "u",  # ] "\n\n  "v",\n]',
        "[[1], [2,\n 3]]",
        "{ c = 1, d = { e = [1, 2] } }",
        "1979-05-27T07:32:00Z",
    ]
)
_ENDS = st.sampled_from(["", "  # weight = 1", "\n", "\n# [a]\n"])
_KEYS = st.lists(_NAMES, min_size=1, max_size=3).map(".".join)
_PAIRS = st.tuples(_KEYS, st.sampled_from([" = ", "="]), _VALUES).map("".join)
_TABLES = st.one_of(_KEYS.map("[{}]".format), _KEYS.map("[[ {} ]]".format))
_DOCUMENTS = st.lists(st.tuples(st.one_of(_PAIRS, _TABLES), _ENDS).map("".join), max_size=12)


@given(_DOCUMENTS)
@settings(max_examples=400, deadline=None)
def test_line_is_where_the_parser_first_learns_of_the_key(statements):
    """Tables, arrays of tables, dotted and quoted names, texts and lists over many lines."""
    source = _sound(statements)
    for key in sorted(set(_keys(tomllib.loads(source)))):
        assert line_of(source, key) == _slowly(source, key), (source, key)


def _sound(statements: list[str]) -> str:
    """As many of the statements as are TOML together."""
    kept: list[str] = []
    for statement in statements:
        if _read("\n".join([*kept, statement])) is not None:
            kept.append(statement)
    return "\n".join(kept)


def _slowly(source: str, key: str) -> int:
    lines = source.split("\n")
    known = 0
    for count in range(len(lines) + 1):
        read = _read("\n".join(lines[:count]))
        if read is None:
            continue
        if key in set(_keys(read)):
            return known + 1
        known = count
    raise AssertionError(f"{key} is not in the document")


def _read(source: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError:
        return None


def _keys(value: object, above: str = "") -> Iterator[str]:
    """Every key, dotted; entries of lists of tables by their number."""
    entries: list[tuple[str, object]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        entries = [(str(number), each) for number, each in enumerate(value)]
    for name, inner in entries:
        key = f"{above}.{name}" if above else name
        yield key
        yield from _keys(inner, key)
