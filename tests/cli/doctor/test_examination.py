"""All checks run at once, and none can spoil the others."""

import json
import threading
import time

import pytest

from jupyter_gpupool.cli.doctor.checks import CHECKS
from jupyter_gpupool.cli.doctor.examination import examine
from jupyter_gpupool.cli.doctor.finding import Severity, problem, well
from jupyter_gpupool.cli.doctor.report import document
from jupyter_gpupool.cli.doctor.sight import Check, Group
from jupyter_gpupool.pool.errors import Unavailable

NO_POOL = {"GPUPOOL_URL": "nonsense"}


def check(look, name="a-check"):
    return Check(Group.FILES, name, look)


def fails(error):
    def look(_sight):
        raise error

    return check(look)


def test_a_check_that_hangs_holds_up_nobody():
    """It is told as not seen, and what the others saw is told."""
    never = threading.Event()
    started = time.monotonic()
    hanging = check(lambda _sight: never.wait(60) and ())
    told = examine(NO_POOL, [hanging, check(lambda _sight: [well("w", "Well.")])], within_s=1.0)
    never.set()
    assert time.monotonic() - started < 10
    assert [each.finding.severity for each in told] == [Severity.UNKNOWN, Severity.WELL]


def test_checks_run_at_the_same_time():
    """Two that wait for each other both end."""
    both = threading.Barrier(2)
    looks = [check(lambda _sight: [well("w", str(both.wait(10) in (0, 1)))]) for _ in range(2)]
    assert [each.finding.what for each in examine(NO_POOL, looks)] == ["True", "True"]


def test_a_fault_of_a_check_is_one_sentence():
    """It is told as not seen, without a traceback."""
    (told,) = examine(NO_POOL, [fails(KeyError("odd"))])
    assert told.finding.severity is Severity.UNKNOWN
    assert "KeyError" in told.finding.what


def test_an_error_with_words_of_its_own_is_a_problem():
    """The sentence and the hint are the error's."""
    (told,) = examine(NO_POOL, [fails(Unavailable("It is away.", hint="Wait."))])
    found = told.finding
    assert (found.severity, found.what, found.mend) == (Severity.PROBLEM, "It is away.", "Wait.")


@pytest.mark.parametrize(
    ("environ", "secret"),
    [
        ({"GPUPOOL_TOKEN": "gpt_very_secret"}, "gpt_very_secret"),
        ({}, "hunter2"),
    ],
)
def test_no_secret_is_told(environ, secret):
    """Neither a token nor a password in a URL, in whatever sentence it stands."""
    said = f"See http://me:{secret}@proxy/" if not environ else f"It holds {secret}."
    told = examine(NO_POOL | environ, [check(lambda _sight: [problem("p", said, said)])])
    assert secret not in json.dumps(document(told))


def test_every_check_has_a_name_of_its_own():
    """What could not look is known by it."""
    names = [each.name for each in CHECKS]
    assert len(set(names)) == len(names)
