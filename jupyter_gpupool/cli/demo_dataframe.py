"""The demo's dataframe: computed on its workers, checked on this side."""

# mypy: allow-untyped-calls
# dask types only some of what it offers.

import dask.dataframe
import numpy as np
import pandas as pd  # type: ignore[import-untyped] # has no types of its own

from .demo_wrong import Wrong

_ROWS = 200_000
_PARTS = 4


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
