"""What the demo computes on its workers: an array and a dataframe, each checked on this side."""

# mypy: allow-untyped-calls
# dask types only some of what it offers.

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd  # type: ignore[import-untyped] # has no types of its own

_SIDE = 1_000
_CHUNK = 250
_ROWS = 200_000
_PARTS = 4


class Wrong(Exception):
    """Dask and NumPy or pandas disagree."""


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


def dataframe_result() -> str:
    """Average one column by another, part by part.

    Raises:
        Wrong: If pandas gets something else.
    """
    numbers = np.arange(_ROWS)
    here = pd.DataFrame({"group": numbers % 10, "value": np.sqrt(numbers)})
    there = dask.dataframe.from_pandas(here, npartitions=_PARTS)
    got = there.groupby("group")["value"].mean().compute().sort_index()
    if not np.allclose(got, here.groupby("group")["value"].mean()):
        raise Wrong(f"the dataframe's means are {list(got)}")
    return f"{_ROWS:,} rows, {len(got)} means, the last {got.iloc[-1]:.4f}"


def _element(row: np.ndarray, column: np.ndarray) -> np.ndarray:
    element: np.ndarray = (3.0 * row + 5.0 * column) % 7
    return element
