"""How long something takes is worded in one place, whatever room says it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jupyter_gpupool

_PACKAGE = Path(jupyter_gpupool.__file__).parent
_UNIT = re.compile(r" (s|min|minutes?|seconds?)\b")
_MEASURED = re.compile(r"\.[1-9]f")
_REFUSED = {
    "scheduling/claim_checks.py": "has … s; it must be above 0",
    "scheduling/queue_checks.py": "a minimum runtime of … s; it must be 0 or more",
}
"""What is no time is told as it was given."""


def test_no_time_is_worded_by_hand() -> None:
    """Else "65 s" is a minute here and 65 s there; what was measured keeps its decimals."""
    found = {
        str(file.relative_to(_PACKAGE)): words
        for file in sorted(_PACKAGE.rglob("*.py"))
        for words in _worded_times(ast.parse(file.read_text()))
    }
    assert found.keys() == _REFUSED.keys(), found


def _worded_times(tree: ast.AST) -> Iterator[str]:
    """The f-strings in which a unit of time stands right behind a value."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            is_told = isinstance(value, ast.FormattedValue) and not _is_measured(value)
            if is_told and isinstance(after, ast.Constant) and _UNIT.match(str(after.value)):
                yield ast.unparse(node)


def _is_measured(value: ast.FormattedValue) -> bool:
    return value.format_spec is not None and bool(_MEASURED.search(ast.unparse(value.format_spec)))
