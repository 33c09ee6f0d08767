"""A claim as text and HTML: the words, the order, and nothing that looks live."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.notebook.card import CardState, card_html, card_state, card_text
from jupyter_gpupool.notebook.moments import clock, ordinal, shape
from jupyter_gpupool.notebook.workers import devices_text
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.protocol.api import ClaimView, WaitView
from jupyter_gpupool.protocol.warned import WarningView

NOW = datetime(2026, 11, 30, 14, 16, tzinfo=UTC)
View = Callable[..., ClaimView]


def test_running_claim_is_told_in_two_lines(a_view: View, a_lease: Callable[..., object]) -> None:
    """Workers that are there of those wanted, and where they are."""
    view = a_view(
        name="segment-cells",
        workers={"min": 1, "max": 4},
        leases=[a_lease("gpu-03"), a_lease("gpu-03"), a_lease("gpu-04")],
    )
    assert card_text(view, NOW) == (
        "gpupool claim segment-cells: running, 3 of 4 workers\n"
        "3 × A100 on gpu-03, gpu-04 · as of 14:16"
    )


def test_waiting_claim_tells_its_place_and_the_reason(a_view: View) -> None:
    """What it waits for, and what binds it."""
    wait = WaitView(place=2, reason="All 8 H100 are in use.")
    view = a_view(phase="pending", model="H100", workers={"min": 4, "max": 4}, wait=wait)
    assert card_text(view, NOW) == (
        "gpupool claim mine: waiting for 4 × H100, 2nd in line\nAll 8 H100 are in use · as of 14:16"
    )


def test_waiting_claim_tells_when_it_is_thought_to_start(a_view: View) -> None:
    """No finer than it is known; the late one only if it is another."""
    starts = {"starts_at": NOW + timedelta(minutes=3), "starts_by": NOW + timedelta(minutes=33)}
    view = a_view(phase="pending", wait=WaitView(place=2, reason="All are in use.", **starts))
    assert "in line, starts about 14:19 (by 14:50 with nine in ten)" in card_text(view, NOW)
    same = WaitView(place=2, reason="", starts_at=NOW, starts_by=NOW, starts_learned=True)
    assert "starts about 14:16 (learned from past claims)" in card_text(
        a_view(phase="pending", wait=same), NOW
    )


def test_problem_of_its_processes_is_told(a_view: View, a_lease: Callable[..., object]) -> None:
    """With what to do, for nothing else shows that the claim stands still."""
    said = "Its scheduler, process 7, was stopped."
    view = a_view(problem=said, leases=[a_lease("gpu-05")])
    assert card_text(view, NOW).splitlines()[1] == said
    assert said in card_html(view, NOW)


def test_warning_stands_before_everything_else(
    a_view: View, a_lease: Callable[..., object]
) -> None:
    """When the devices go back, and why."""
    warning = WarningView(rule="idle", deadline=NOW + timedelta(minutes=4), reason="No tasks.")
    view = a_view(warning=warning, leases=[a_lease("gpu-05")])
    assert card_text(view, NOW).splitlines()[1] == "Goes back 14:20: No tasks."
    assert card_html(view, NOW).index("Goes back 14:20") < card_html(view, NOW).index("gpu-05")


def test_hibernated_claim_says_once_what_is_kept(a_view: View) -> None:
    """Its warning and its reason are one sentence."""
    reason = "2 results kept."
    warning = WarningView(rule="kept-results", deadline=NOW + timedelta(days=3), reason=reason)
    view = a_view(phase="hibernated", reason=reason, warning=warning)
    for card in (card_text(view, NOW), card_html(view, NOW)):
        assert card.count("2 results kept") == 1
        assert "s of 14:16" in card


@pytest.mark.parametrize("kind", EndKind)
def test_ended_claim_says_how_and_when(a_view: View, kind: EndKind) -> None:
    """Not just that it is over."""
    view = a_view(phase="ended", end=kind, reason="It had to be.")
    assert card_text(view, NOW).startswith(f"gpupool claim mine: {kind} 12:00")
    assert "It had to be" in card_html(view, NOW)


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_a_card(a_view: View, phase: Phase) -> None:
    """Even one whose claim knows nothing else yet."""
    view = a_view(phase=phase, reason="So it is.")
    assert card_state(view) in CardState
    assert "as of 14:16" in card_text(view, NOW)
    assert "As of 14:16" in card_html(view, NOW)


def test_nothing_of_a_claim_becomes_markup(a_view: View, a_lease: Callable[..., object]) -> None:
    """Names, hosts and reasons are others' text."""
    evil = '"><script>alert(1)</script>'
    warning = WarningView(rule=evil, deadline=NOW, reason=evil)
    view = a_view(name=evil, reason=evil, warning=warning, leases=[a_lease(evil)])
    assert "<script" not in card_html(view, NOW)
    assert "<script" not in card_html(a_view(name=evil, reason=evil, phase="pending"), NOW)


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (NOW + timedelta(minutes=4), "14:20"),
        (NOW + timedelta(days=3), "Thu 14:16"),
        (NOW + timedelta(days=24), "2026-12-24 14:16"),
        (NOW - timedelta(days=1), "Sun 14:16"),
    ],
)
def test_moment_is_as_short_as_it_can_be(moment: datetime, told: str) -> None:
    """The day only when it is another one."""
    assert clock(moment, NOW) == told


def test_places_are_ordinals() -> None:
    """As people say them."""
    told = " ".join(ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 101, 112))
    assert told == "1st 2nd 3rd 4th 11th 12th 13th 21st 101st 112th"


def test_shape_is_what_it_has_or_else_what_it_wants(
    a_view: View, a_lease: Callable[..., object]
) -> None:
    """Mixed models are told apart."""
    assert shape(a_view(workers={"min": 1, "max": 4})) == "1 to 4 devices"
    assert shape(a_view(model="H100", workers={"min": 2, "max": 2})) == "2 × H100"
    mixed = [a_lease("a"), a_lease("b", model="NVIDIA L40S")]
    assert shape(a_view(leases=mixed)) == "1 × A100, 1 × L40S"


def test_claim_that_ends_says_why_and_no_more(a_view: View, a_lease: Callable[..., object]) -> None:
    """Its workers are nobody's any more."""
    view = a_view(phase="ending", reason="Its scheduler was lost.", leases=[a_lease("gpu-1")])
    assert card_text(view, NOW) == (
        "gpupool claim mine: ending\nIts scheduler was lost · as of 14:16"
    )
    assert "gpu-1" not in card_html(view, NOW)


@pytest.mark.parametrize(
    ("lease", "words"),
    [
        ({}, "A100"),
        ({"share": 0.25}, "0.25 of A100"),
        ({"devices": ("GPU-1", "GPU-2")}, "2×A100"),
    ],
)
def test_card_says_how_much_of_devices_a_worker_has(a_view, a_lease, lease, words) -> None:
    """A device, a part of one, or several."""
    held = a_lease("host", **lease)
    assert devices_text(held, held.model) == words
    assert words in card_html(a_view(leases=(held,)), NOW)
    assert f"1 × {words} on host" in card_text(a_view(leases=(held,)), NOW)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"gpus_per_worker": 0.5}, "waiting for 2 × 0.5 of a device"),
        ({"gpus_per_worker": 4, "model": "H100"}, "waiting for 2 × 4 H100"),
        ({"gpus_per_worker": 0, "gpu_memory": 10 * 2**30}, "waiting for 2 × 10 GiB of a device"),
    ],
)
def test_waiting_claim_says_how_much_of_devices_it_asks_for(a_view, terms, words) -> None:
    """For each of its workers."""
    wait = WaitView(place=1, reason="All are in use.")
    view = a_view(phase="pending", workers={"min": 2, "max": 2}, wait=wait, **terms)
    assert words in card_text(view, NOW)
