"""Whether the packages of this Python fit each other."""

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.packages import (
    PackageFacts,
    broken_requirements,
    judge_packages,
    look_at_packages,
    version_of,
)
from jupyter_gpupool.pool.errors import Unavailable

WHOLE = {"dask-cuda": "1", "distributed": "1"}
LACKS = "it lacks bokeh: python -m pip install bokeh"


def judged(*, is_pool_named: bool = False, **facts):
    return list(
        judge_packages(PackageFacts(**{"versions": WHOLE, **facts}), is_pool_named=is_pool_named)
    )


def test_the_tests_own_packages_fit():
    """What is really installed here, which the tests need whole."""
    facts = look_at_packages()
    assert (facts.broken, facts.missing, facts.lacks) == ([], None, "")
    assert facts.versions["dask-cuda"]


def test_packages_that_fit_are_well():
    """One line says so."""
    assert [each.severity for each in judged()] == [Severity.WELL]


def test_a_release_that_is_not_the_wanted_one_is_found():
    """With both numbers, the installed package's and the wanted one."""
    (sentence,) = broken_requirements("x", ["dask==1999.1", "click>=1"])
    assert sentence == f"x needs dask==1999.1, and {version_of('dask')} is installed"


def test_a_package_that_is_not_there_is_found():
    """But only if this Python on this system wants it."""
    lines = ["no-such-package", 'nor-this; sys_platform == "win32"', 'nor-that; extra == "more"']
    (sentence,) = broken_requirements("x", lines)
    assert sentence == "x needs no-such-package, which is not installed"


@pytest.mark.parametrize(
    ("facts", "reference", "severity"),
    [
        ({"broken": ["x needs y"]}, "requirement-broken", Severity.PROBLEM),
        ({"lacks": LACKS}, "workers-lack-packages", Severity.PROBLEM),
        ({"has_stand_in": True}, "pynvml-package", Severity.WARNING),
        ({"versions": {}}, "no-distributed", Severity.NOTE),
    ],
)
def test_each_misfit_is_told(facts, reference: str, severity: Severity):
    """With what to run."""
    (found,) = judged(**facts)
    assert (found.reference, found.severity) == (reference, severity)
    assert "pip" in found.mend


def test_python_that_is_no_hosts_need_run_no_workers():
    """What they would lack is of no interest there."""
    (found,) = judged(versions={"distributed": "1"}, lacks=LACKS)
    assert found.severity is Severity.WELL


def test_what_a_private_pool_lacks_matters_to_who_needs_one():
    """Not to who uses a pool that others run."""
    missing = Unavailable("It lacks fastapi.", hint="pip install")
    (found,) = judged(missing=missing)
    assert (found.severity, found.what) == (Severity.PROBLEM, "It lacks fastapi.")
    (found,) = judged(missing=missing, is_pool_named=True)
    assert found.severity is Severity.WELL
