"""The table of arrows: which event moves a claim where, and that nothing else moves it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_gpupool.pool import claim_events as happened
from jupyter_gpupool.pool.claim import Phase, StoryLine
from jupyter_gpupool.pool.claim_events import ClaimEvent, EndKind
from jupyter_gpupool.pool.claim_machine import ARROWS, ImpossibleTransition, step
from jupyter_gpupool.pool.claim_step import Effect

P, S, R = Phase.PENDING, Phase.STARTING, Phase.RUNNING
H, HD, RS = Phase.HIBERNATING, Phase.HIBERNATED, Phase.RESUMING
E, ED = Phase.ENDING, Phase.ENDED

TABLE: dict[tuple[Phase, type[ClaimEvent]], Phase] = {
    (P, happened.Granted): S,
    (RS, happened.Granted): S,
    (S, happened.SchedulerUp): S,
    (S, happened.MinimumUp): R,
    (S, happened.StartFailed): P,
    (S, happened.Withdrawn): P,
    (R, happened.SchedulerUp): R,
    (R, happened.WorkersChanged): R,
    (R, happened.Warned): R,
    (R, happened.WarningCleared): R,
    (R, happened.ProblemsChanged): R,
    (S, happened.Kept): S,
    (R, happened.Kept): R,
    (R, happened.HibernateAsked): H,
    (RS, happened.HibernateAsked): HD,
    (H, happened.NotKept): R,
    (H, happened.RoomGiven): H,
    (H, happened.ResultsKept): HD,
    (HD, happened.ResumeAsked): RS,
    (R, happened.ResultsBack): R,
    **{(phase, happened.ResultsLost): phase for phase in (HD, RS, S, R)},
    (P, happened.Rescaled): P,
    (S, happened.Rescaled): S,
    (R, happened.Rescaled): R,
    (RS, happened.Rescaled): RS,
    **{(phase, happened.EndAsked): E for phase in (P, S, R, H, HD, RS)},
    (E, happened.AllFreed): ED,
}
EVERY_KIND = [
    kind
    for kind in vars(happened).values()
    if isinstance(kind, type) and issubclass(kind, ClaimEvent) and kind is not ClaimEvent
]
EVERY_PAIR = [(phase, kind) for phase in Phase for kind in EVERY_KIND]


def said(pair: tuple[Phase, type[ClaimEvent]]) -> str:
    return f"{pair[0]}-{pair[1].__name__}"


@pytest.mark.parametrize("pair", sorted(TABLE, key=said), ids=said)
def test_an_arrow_leads_where_the_table_says(pair, a_claim, event, noon):
    """Each arrow of the design has its end, and carries the event's reason along."""
    phase, kind = pair
    after = step(a_claim(phase), event(kind), noon).claim
    assert after.phase is TABLE[pair]
    assert after.reason == after.story[-1].reason


@pytest.mark.parametrize("pair", [pair for pair in EVERY_PAIR if pair not in TABLE], ids=said)
def test_what_is_not_in_the_table_is_refused_in_a_sentence(pair, a_claim, event, noon):
    """An event with no arrow raises: the phase, how the claim came there, what to do now."""
    phase, kind = pair
    claim = a_claim(phase)
    with pytest.raises(ImpossibleTransition, match=f"^Claim mine is {phase}, ") as refused:
        step(claim, event(kind), noon)
    assert refused.value.message.endswith(claim.reason)
    assert refused.value.hint
    assert kind.__name__ not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "wish"),
    [
        (happened.Rescaled, "be scaled"),
        (happened.Kept, "be kept"),
        (happened.HibernateAsked, "hibernate"),
        (happened.ResumeAsked, "be resumed"),
    ],
)
def test_a_refusal_says_what_was_wanted(kind, wish, a_claim, event, noon):
    """Its user may have wanted several things at once."""
    with pytest.raises(ImpossibleTransition, match=f"is ended, so it cannot {wish} now: "):
        step(a_claim(Phase.ENDED), event(kind), noon)


def test_a_refusal_holds_the_story_and_shows_one_line_of_it(a_claim, event, noon):
    """Twelve arrows with long reasons are an attribute, and no message."""
    line = StoryLine(at=noon, phase=R, reason="x" * 2000)
    claim = replace(a_claim(Phase.ENDED), reason=line.reason, story=(line,) * 12)
    with pytest.raises(ImpossibleTransition) as refused:
        step(claim, event(happened.Rescaled), noon)
    assert refused.value.story == claim.story
    assert len(str(refused.value)) < 400


def test_the_table_holds_nothing_the_design_does_not():
    """Code and design list the same arrows, and every event has one somewhere."""
    assert set(ARROWS) == set(TABLE)
    assert {kind for _, kind in ARROWS} == set(EVERY_KIND)


@pytest.mark.parametrize("phase", [P, S, R, H, HD, RS])
def test_an_end_gives_back_what_the_claim_holds(phase, a_claim, event, noon):
    """From every living phase, an end asks for its leases back and for a new plan."""
    ending = step(a_claim(phase), event(happened.EndAsked), noon)
    assert ending.effects == (Effect.END_LEASES, Effect.REPLAN)
    assert ending.claim.end is EndKind.RELEASED


def test_a_withdrawn_start_is_no_failed_one(a_claim, event, noon):
    """The claim waits in its old place, and has lost none of its tries."""
    withdrawn = step(a_claim(S), event(happened.Withdrawn), noon + timedelta(minutes=5))
    assert withdrawn.effects == (Effect.END_LEASES, Effect.REPLAN)
    assert (withdrawn.claim.wanted_since, withdrawn.claim.failed_starts) == (noon, 0)


def test_a_failed_start_gives_its_leases_back_and_queues_again(a_claim, event, noon):
    """Nothing of a failed start stays; the claim waits in its old place in line."""
    failed = step(a_claim(S), event(happened.StartFailed), noon + timedelta(minutes=5))
    assert failed.effects == (Effect.END_LEASES, Effect.REPLAN)
    assert failed.claim.wanted_since == noon
    assert failed.claim.scheduler is None
