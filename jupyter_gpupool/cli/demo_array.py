"""The demo's array: computed on its workers, checked on this side.

Its workers import this file to run `_element`, so it imports no more than that needs.
"""

# mypy: allow-untyped-calls
# dask types only some of what it offers.

import dask.array
import numpy as np

from .demo_wrong import Wrong

_SIDE = 1_000
_CHUNK = 500


def array_result() -> str:
    """Multiply a matrix with its transpose, block by block.

    Raises:
        Wrong: If NumPy gets something else.
    """
    shape = (_SIDE, _SIDE)
    there = dask.array.fromfunction(_element, shape=shape, chunks=_CHUNK, dtype="float64")
    got = float((there @ there.T).sum().compute())
    column_sums = np.fromfunction(_element, shape).sum(axis=0)
    if not np.isclose(got, column_sums @ column_sums):
        raise Wrong(f"the array's sum is {got}")
    return f"{_SIDE} x {_SIDE} matrix product, sum {got:.6g}"


def _element(row: np.ndarray, column: np.ndarray) -> np.ndarray:
    element: np.ndarray = (3.0 * row + 5.0 * column) % 7
    return element
