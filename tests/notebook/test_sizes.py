"""How many workers a claim may be scaled or adapted to, as people write it."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

from jupyter_gpupool.notebook.workers import adapted, scaled
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import MAX_WORKERS, WorkerBounds
from jupyter_gpupool.protocol.api import ClaimView


@pytest.mark.parametrize("bound", [{"minimum": "1"}, {"maximum": "2"}, {"minimum": -1}])
def test_nonsense_is_no_bound(a_view: Callable[..., ClaimView], bound: dict[str, Any]) -> None:
    """Refused in a sentence."""
    with pytest.raises(BadRequest, match="cannot have"):
        adapted(a_view(), **{"minimum": 0, "maximum": None, **bound}, others=())


def test_bounds_may_be_left_open(a_view: Callable[..., ClaimView]) -> None:
    """As Dask's own clusters take them: no least, no most, and whatever counts."""
    view = a_view(workers={"min": 1, "max": 3})
    assert adapted(view, None, None, ()) == WorkerBounds(0, 3)
    assert adapted(view, 1, inf, ()) == WorkerBounds(1, MAX_WORKERS)
    assert adapted(view, np.int64(1), np.int64(2), ()) == WorkerBounds(1, 2)  # type: ignore[arg-type]
    assert scaled(view, np.int64(2)) == WorkerBounds(1, 2)  # type: ignore[arg-type]
