"""Whatever a user's code says, the host can still be heard."""

import os
from datetime import UTC, datetime

import pytest

from jupyter_gpupool.agent.link import _encoded
from jupyter_gpupool.agent.sendable import sendable, sendable_report, short_report
from jupyter_gpupool.protocol.keeping import Keeping
from jupyter_gpupool.protocol.link import HostReport, ProcessPhase, SchedulerReport


def a_report(problem: str) -> HostReport:
    scheduler = SchedulerReport(
        claim_id="c1", start=1, phase=ProcessPhase.FAILED, problem=problem, pid=os.getpid()
    )
    return HostReport(
        host_id="host-1",
        name="a",
        address="127.0.0.1",
        agent_pid=1,
        agent_version="1",
        generation=3,
        at=datetime.now(UTC),
        cpus=1,
        memory_bytes=1,
        schedulers=(scheduler,),
    )


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "x\0y"])
def test_text_that_breaks_encodings_is_replaced(text) -> None:
    """The rest of it stays."""
    assert sendable(text) == text.translate({0: "?", 0xD800: "?", 0xDFFF: "?"})


@pytest.mark.parametrize("text", ["", "plain", "Grüße, 漢字 🙂"])
def test_good_text_stays(text) -> None:
    """In any script."""
    assert sendable(text) == text


def test_report_keeps_all_but_the_bad_letters() -> None:
    """The manager misses nothing it could use."""
    cleaned = sendable_report(a_report("it \ud800 died"))
    assert HostReport.model_validate_json(cleaned.model_dump_json()) == cleaned
    assert cleaned.schedulers[0].problem == "it ? died"
    assert cleaned == a_report("it ? died").model_copy(update={"at": cleaned.at})


def test_short_report_leaves_out_what_the_talkative_say() -> None:
    """Everybody else is reported whole, and nobody is left out."""
    report = a_report("it died")
    [plain] = report.schedulers
    names = tuple(f"l{number}" for number in range(9_999))
    much = plain.model_copy(
        update={
            "claim_id": "c2",
            "problem": "why" * 999,
            "retired": names,
            "retiring": names,
            "keeping": Keeping(problem="full"),
        }
    )
    short = short_report(report.model_copy(update={"schedulers": (plain, much)}))
    assert short.schedulers[0] == plain
    assert short.schedulers[1] == plain.model_copy(
        update={"claim_id": "c2", "problem": ("why" * 999)[:200]}
    )


def test_report_that_is_too_large_is_sent_short() -> None:
    """The manager's server would hang up on it, again and again."""
    report = a_report("it died")
    [plain] = report.schedulers
    much = tuple(plain.model_copy(update={"problem": "why" * 10_000}) for _ in range(500))
    assert len(_encoded(report.model_copy(update={"schedulers": much}))) < 2**20
    assert "it died" in _encoded(report)
