"""A package that is not installed is told in one sentence."""

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.lacking import lacking


def test_package_is_named_with_what_needs_it() -> None:
    """Not its submodule, and with what to install."""
    error = lacking("gpupool.claim", ModuleNotFoundError(name="distributed.core"))
    assert isinstance(error, Unavailable)
    assert str(error).startswith("gpupool.claim needs the package distributed, which")
    assert "[all]" in error.hint


def test_module_of_ours_that_is_missing_is_our_mistake() -> None:
    """No user can mend that."""
    error = ModuleNotFoundError(name="jupyter_gpupool.nonsense")
    assert lacking("This", error) is error
