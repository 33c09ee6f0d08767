"""What a scheduler says of results: whatever users call theirs, it is heard, and it is not long."""

import json

import pytest

from jupyter_gpupool.protocol.keeping import MOST_UNKEPT_TOLD, Keeping, Unkept, UnkeptReason
from jupyter_gpupool.protocol.launch import SchedulerState, decode


def _heard(keeping: Keeping) -> Keeping:
    read = decode(
        SchedulerState(address="tls://a", dashboard_port=1, workers=(), keeping=keeping).encode()
    )
    assert isinstance(read, SchedulerState)
    return read.keeping


def _unkept(key: str, detail: str = "") -> Unkept:
    return Unkept(key=key, reason=UnkeptReason.UNWRITABLE, detail=detail)


def test_long_texts_are_cut():
    """A key holds a whole graph's arguments, an error the repr of an array."""
    long = "x" * 100_000
    heard = _heard(Keeping(unkept=(_unkept(long, long),), problem=long))
    [told] = heard.unkept
    assert {len(told.key), len(told.detail), len(heard.problem)} == {500}


def test_more_results_than_are_told_are_left_out():
    """Each one goes into every report, and to everybody who looks at the claim."""
    heard = _heard(Keeping(unkept=(_unkept("a"),) * 1000, unkept_count=1000))
    assert (len(heard.unkept), heard.unkept_count) == (MOST_UNKEPT_TOLD, 1000)


@pytest.mark.parametrize("text", ["a\0b", "a\udc80b"])
def test_what_no_database_takes_is_replaced(text):
    """Rather than not hearing the scheduler at all."""
    [told] = _heard(Keeping(unkept=(_unkept(text, text),))).unkept
    assert (told.key, told.detail) == ("a?b", "a?b")


@pytest.mark.parametrize("wrong", [{"key": 1, "reason": "actor"}, {"reason": "actor"}, "actor"])
def test_what_is_no_result_is_refused(wrong):
    """A user's code runs in that process."""
    line = json.loads(SchedulerState(address="tls://a", dashboard_port=1, workers=()).encode())
    line["keeping"]["unkept"] = [wrong]
    with pytest.raises(ValueError, match="not a line"):
        decode(json.dumps(line))
