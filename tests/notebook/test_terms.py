"""Words of a user become the body of a request, or one sentence."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from jupyter_gpupool.notebook.terms import body_of, bounds_of, workers_on
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import WorkerBounds


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (2, (2, 2)),
        ((1, 4), (1, 4)),
        (0, (0, 0)),
        ([1, 2], (1, 2)),
        (np.int64(2), (2, 2)),
        ((np.int32(1), 4), (1, 4)),
    ],
)
def test_gpus_are_bounds(gpus: Any, expected: tuple[int, int]) -> None:
    """A number is both bounds; a pair is the least and the most."""
    assert bounds_of(gpus) == WorkerBounds(*expected)


@pytest.mark.parametrize("gpus", ["2", 0.5, True, None, (1, 2, 3), (4, 1), -1, (1.0, 2), {}])
def test_nonsense_is_no_number_of_devices(gpus: Any) -> None:
    """Refused here, before a pool is looked for."""
    with pytest.raises(BadRequest):
        bounds_of(gpus)


def test_numbers_of_numpy_are_numbers() -> None:
    """A computed amount need not be turned into Python's own first."""
    body = body_of(np.int64(4), {"gpus_per_worker": np.int64(2), "memory": np.int64(2**30)})  # type: ignore[arg-type,typeddict-item]
    assert (body.workers.max, body.gpus_per_worker, body.memory) == (2, 2, "1073741824")
    assert body_of(np.float64(0.5), {}).gpus_per_worker == 0.5


@pytest.mark.parametrize("limit", ["2h", 7200, timedelta(hours=2)])
def test_durations_are_sent_as_seconds(limit: Any) -> None:
    """However they are written."""
    assert body_of(1, {"time_limit": limit}).time_limit_s == 7200


def test_sizes_are_sent_as_text() -> None:
    """Numbers of bytes and words mean the same."""
    body = body_of(1, {"gpu_memory": 2**30, "memory": "1GiB", "rmm_pool_size": 1024})
    assert (body.gpu_memory, body.memory, body.rmm_pool_size) == ("1073741824", "1GiB", "1024")


def test_modules_to_import_may_be_one_text() -> None:
    """As on dask-cuda's own command line."""
    assert body_of(1, {"pre_import": "cupy,cudf"}).pre_import == ("cupy", "cudf")


def test_terms_left_out_are_the_managers() -> None:
    """None is the same as not said."""
    body = body_of(1, {"name": None, "time_limit": None})  # type: ignore[typeddict-item]
    assert (body.name, body.time_limit_s) == ("", None)


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"gpu_memori": "1GiB"}, "gpu_memori"),
        ({"gpu_memory": "much"}, "gpu_memory"),
        ({"nthreads": 0}, "nthreads"),
        ({"nthreads": "many"}, "nthreads"),
        ({"time_limit": "soon"}, "time_limit"),
        ({"priority": "\udcff"}, "priority"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"name": "a/b"}, "name"),
        ({"protocol": "tcp"}, "protocol"),
        ({"pre_import": 7}, "pre_import"),
        ({"env": {"A": "\udcff"}}, "env"),
        ({"name": "\udcff"}, "name"),
        ({"model": "\udcff"}, "model"),
        ({"pre_import": "\udcff"}, "pre_import"),
    ],
)
def test_wrong_term_is_named(terms: Any, field: str) -> None:
    """In one line, with the field that is wrong."""
    with pytest.raises(BadRequest) as refused:
        body_of(1, terms)
    assert refused.value.field == field
    assert "\n" not in str(refused.value)


def test_unknown_term_gets_the_list_of_known_ones() -> None:
    """A misspelt one is found by looking."""
    with pytest.raises(BadRequest, match=r"Its terms are: .*gpu_memory"):
        body_of(1, {"gpu_memori": "1GiB"})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    "env", [[("KEY", "s3cret")], {"PIN": 53037}, {"K": "s3cret\x00"}, {"K": "s3cret\udcff"}]
)
def test_secrets_are_in_no_error(env: Any) -> None:
    """A notebook's output is saved and shared."""
    with pytest.raises(BadRequest, match=r"env|K") as refused:
        body_of(1, {"env": env})
    assert "s3cret" not in str(refused.value)
    assert "53037" not in str(refused.value)


def test_part_of_a_device_is_one_worker_on_it() -> None:
    """`gpus=0.5` is written as what it is."""
    body = body_of(0.5, {})
    assert (body.workers.max, body.gpus_per_worker) == (1, 0.5)


@pytest.mark.parametrize(
    ("gpus", "per_worker", "workers"), [(4, 2, 2), ((2, 8), 2, (1, 4)), (2, 0.5, 4), (1.5, 0.5, 3)]
)
def test_devices_are_divided_among_workers(gpus: Any, per_worker: float, workers: Any) -> None:
    """`gpus` counts devices, whatever part of one or however many of them a worker has."""
    least, most = workers if isinstance(workers, tuple) else (workers, workers)
    assert workers_on(gpus, per_worker) == WorkerBounds(least, most)


@pytest.mark.parametrize(
    ("gpus", "per_worker"),
    [(3, 2), (1, 2), (0.5, 1), (1.5, 1), (1, 0), (1, -1), (1, 1.5), (1, "2"), (1, None), (True, 2)],
)
def test_devices_that_do_not_divide_are_refused(gpus: Any, per_worker: Any) -> None:
    """With the numbers that would."""
    with pytest.raises(BadRequest):
        workers_on(gpus, per_worker)


def test_part_is_told_once() -> None:
    """By its share or by its memory."""
    assert body_of(1, {"gpu_memory": "10GiB"}).to_request().devices.memory_bytes == 10 * 2**30
    with pytest.raises(BadRequest, match="part of one device already"):
        body_of(0.5, {"gpu_memory": "10GiB"})


def test_every_term_of_a_claim_can_be_written() -> None:
    """The manager says which of them this pool cannot keep."""
    body = body_of(1, {"cpus": 4, "on_idle": "release"})
    assert (body.cpus, body.on_idle) == (4, "release")


@pytest.mark.parametrize(("typo", "meant"), [("gpu", "gpus"), ("time_limt", "time_limit")])
def test_misspelt_terms_are_guessed(typo: str, meant: str) -> None:
    """Also the one that `claim` takes by itself."""
    with pytest.raises(BadRequest, match=rf"Did you mean {meant}\? Its terms are: "):
        body_of(1, {typo: 2})
