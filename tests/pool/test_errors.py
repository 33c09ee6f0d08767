"""The error tree: each has its own reference and a sentence that says what to do."""

import pytest

from jupyter_gpupool.pool import claim, errors
from jupyter_gpupool.pool.errors import NotFound, PoolError

EVERY_ERROR = sorted(
    {
        kind
        for module in (errors, claim)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, PoolError)
    },
    key=lambda kind: kind.__name__,
)


def test_every_error_has_a_reference_of_its_own():
    """Clients tell errors apart by reference, so no two share one."""
    references = {kind.reference for kind in EVERY_ERROR}
    assert len(references) == len(EVERY_ERROR)


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_every_error_is_in_the_tree_of_the_docstring(kind):
    """The module's first page lists all that can go wrong."""
    assert errors.__doc__ is not None
    assert kind.__name__ in errors.__doc__


def test_an_error_reads_as_sentence_and_hint():
    """People see both, without a stray space when there is no hint."""
    assert str(PoolError("It is full.", hint="Wait.")) == "It is full. Wait."
    assert str(PoolError("It is full.")) == "It is full."


def test_notebook_shows_the_users_own_lines_and_the_sentence(tmp_path) -> None:
    """Frames of ours and of libraries help nobody to mend a mistake."""
    cell = tmp_path / "cell.py"
    cell.write_text("def ask():\n    fail()\nask()\n")
    names = {"fail": _fail}
    with pytest.raises(NotFound) as raised:
        exec(compile(cell.read_text(), str(cell), "exec"), names)
    shown = [line for line in raised.value._render_traceback_() if "raise" not in line]
    assert shown[-3:] == [
        "line 3: ask()",
        "line 2: fail()",
        "NotFound: There is no claim x. See the list.",
    ]


def _fail() -> None:
    raise NotFound("There is no claim x.", hint="See the list.")
