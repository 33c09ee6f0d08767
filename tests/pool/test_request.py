"""The terms of a claim: every nonsense one is refused, and named."""

from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import MAX_WORKERS, ClaimRequest, WorkerBounds, WorkerOptions

ONE = WorkerBounds(1, 1)


@pytest.mark.parametrize("bounds", [(-1, 1), (2, 1), (0, MAX_WORKERS + 1), (-2, -1)], ids=str)
def test_bounds_that_make_no_sense_are_refused(bounds):
    """0 ≤ minimum ≤ maximum, and no more than a pool could ever have."""
    with pytest.raises(BadRequest, match="make no sense") as refused:
        WorkerBounds(*bounds)
    assert refused.value.field == "workers"


def test_one_number_that_makes_no_sense_is_said_once():
    """Whoever asked for -1 workers asked for no range."""
    with pytest.raises(BadRequest, match=r"^-1 workers make no sense"):
        WorkerBounds(-1, -1)


@pytest.mark.parametrize("bounds", [(0, 0), (0, MAX_WORKERS), (3, 3)], ids=str)
def test_bounds_at_their_limits_are_taken(bounds):
    """The limits themselves are allowed."""
    assert WorkerBounds(*bounds).maximum == bounds[1]


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": "a\\b"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"memory_bytes": -1}, "min_gpu_memory"),
        ({"memory_bytes": 2**60 + 1}, "min_gpu_memory"),
        ({"expected": timedelta(0)}, "expected"),
        ({"time_limit": timedelta(seconds=-1)}, "time_limit"),
        ({"deadline": datetime(2026, 12, 1)}, "deadline"),  # noqa: DTZ001 - naive on purpose
        ({"env": {"": "x"}}, "env"),
        ({"env": {"1A": "x"}}, "env"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"env": {"A\n": "x"}}, "env"),
        ({"env": {"A": "x\0y"}}, "env"),
        ({"env": {"A": "\ud800"}}, "env"),
        ({"name": "\udcff"}, "name"),
        ({"near": "\udcff"}, "near"),
    ],
    ids=str,
)
def test_a_term_that_makes_no_sense_is_named(terms, field):
    """The error names the term, so that a form can mark it."""
    with pytest.raises(BadRequest) as refused:
        ClaimRequest(workers=ONE, **terms)
    assert refused.value.field == field
    assert refused.value.hint


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"nthreads": 0}, "nthreads"),
        ({"nthreads": 1025}, "nthreads"),
        ({"memory_limit_bytes": 2**20}, "memory"),
        ({"protocol": "tcp"}, "protocol"),
        ({"rmm_async": True, "rmm_managed_memory": True}, "rmm_async"),
        ({"rmm_release_threshold": "1GiB"}, "rmm_release_threshold"),
        ({"device_memory_limit": "much"}, "device_memory_limit"),
        ({"device_memory_limit": "-0.5"}, "device_memory_limit"),
        ({"device_memory_limit": "nan"}, "device_memory_limit"),
        ({"rmm_pool_size": "0"}, "rmm_pool_size"),
        ({"rmm_maximum_pool_size": "inf"}, "rmm_maximum_pool_size"),
        ({"rmm_async": True, "rmm_release_threshold": "x"}, "rmm_release_threshold"),
        ({"pre_import": ("os; rm",)}, "pre_import"),
        ({"pre_import": ("",)}, "pre_import"),
        ({"rmm_allocator_external_lib_list": ("a b",)}, "rmm_allocator_external_lib_list"),
    ],
    ids=str,
)
def test_an_option_dask_cuda_cannot_use_is_named(options, field):
    """What would fail three starts is refused before the first."""
    with pytest.raises(BadRequest) as refused:
        WorkerOptions(**options)
    assert refused.value.field == field
    assert refused.value.hint


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"device_memory_limit": "auto"},
        {"device_memory_limit": "0"},
        {"device_memory_limit": "0.8"},
        {"device_memory_limit": "10GiB"},
        {"rmm_pool_size": "0.9", "rmm_maximum_pool_size": "12000000000"},
        {"rmm_async": True, "rmm_release_threshold": "1GiB"},
        {"pre_import": ("cupy", "os.path")},
        {"nthreads": 1024, "memory_limit_bytes": 64 * 2**20, "protocol": "ucxx"},
    ],
    ids=str,
)
def test_options_that_dask_cuda_knows_are_taken(options):
    """Every form that dask-cuda reads is let through unchanged."""
    built = WorkerOptions(**options)
    assert {name: getattr(built, name) for name in options} == options


def test_good_terms_are_taken():
    """A full request that makes sense is built without complaint."""
    request = ClaimRequest(
        workers=ONE,
        name="Läufe für Ann",
        deadline=datetime(2026, 12, 1, tzinfo=UTC),
        time_limit=timedelta(hours=2),
        env={"TOKEN": "s3cret", "_A1": ""},
    )
    assert request.name == "Läufe für Ann"


def test_broken_variable_is_named_and_not_shown():
    """What it holds is secret even when it is no text."""
    with pytest.raises(BadRequest, match="value of TOKEN") as refused:
        ClaimRequest(workers=ONE, env={"TOKEN": "s3cret\udcff"})
    assert "s3cret" not in str(refused.value)


def test_a_request_never_shows_its_variables():
    """Variables are secret: no log line made from a request can hold one."""
    assert "s3cret" not in repr(ClaimRequest(workers=ONE, env={"TOKEN": "s3cret"}))
