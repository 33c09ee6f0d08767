"""The error tree: each has its own reference and a sentence that says what to do."""

import pytest

from jupyter_gpupool.pool import claim, errors
from jupyter_gpupool.pool.errors import PoolError

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
