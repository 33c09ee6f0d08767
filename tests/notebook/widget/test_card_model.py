"""A claim's card says what the pool has told, and nothing that nobody knows."""

from datetime import datetime, timedelta

import pytest

from jupyter_gpupool.notebook.widget.card import Act, Card, Look
from jupyter_gpupool.notebook.widget.card_model import MOST_ROWS, Snapshot, card_of, cards_in_json
from jupyter_gpupool.notebook.widget.text import Form, Moment, Text
from jupyter_gpupool.notebook.widget.words import Language
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.protocol.api import ClaimView, DeviceView

NOW = datetime.fromisoformat("2026-11-30T14:16:00+00:00")
SOON = NOW + timedelta(minutes=4)
EVIDENCE = {
    "rule": "interactive",
    "revision": 7,
    "ground": "idle",
    "action": "hibernate",
    "lasted_ms": 15 * 60_000,
    "unknown_ms": 0,
    "since": NOW,
    "until": NOW,
    "samples": 90,
    "gpu": 4,
    "held_bytes": 31 * 2**30,
    "active": [],
    "quiet": ["tasks", "memory"],
    "wanted_by": [],
}
WARNING = {
    "rule": "interactive",
    "deadline": SOON,
    "reason": "Long.",
    "evidence": EVIDENCE,
    "action": "hibernate",
    "keep": {"longest_s": 7200},
}


def card(view: ClaimView, language: Language = Language.ENGLISH, **snapshot: object) -> Card:
    seen = Snapshot(**{"view": view, "devices": {}, "at": NOW, **snapshot})
    return card_of(seen, NOW, language)


def said(text: Text) -> str:
    """A text with its times in brackets."""
    return "".join(one if isinstance(one, str) else f"[{one.form}]" for one in text)


def acts(card: Card) -> list[Act]:
    notice = () if card.notice is None else card.notice.buttons
    return [button.act for button in (*card.head, *notice, *card.foot)]


@pytest.mark.parametrize(
    ("changes", "look", "state", "offered"),
    [
        ({"phase": "pending", "model": "H100"}, Look.WAITING, "Waiting for 1 × H100", [Act.CANCEL]),
        ({"phase": "starting"}, Look.CHANGING, "Starting · 0 of 1 worker", [Act.RELEASE]),
        (
            {"phase": "running"},
            Look.RUNNING,
            "Running [age]",
            [Act.HIBERNATE, Act.RELEASE],
        ),
        ({"warning": WARNING}, Look.WARNED, "Goes back [clock]", [Act.KEEP, Act.RELEASE]),
        ({"phase": "hibernating"}, Look.CHANGING, "Hibernating", []),
        (
            {"phase": "hibernated"},
            Look.HIBERNATED,
            "Hibernated since [clock]",
            [Act.RESUME, Act.RELEASE],
        ),
        ({"phase": "resuming"}, Look.CHANGING, "Resuming", [Act.RELEASE]),
        ({"phase": "ending", "end": "released"}, Look.CHANGING, "Ending", []),
        ({"phase": "ended", "end": "released"}, Look.RELEASED, "Released [clock]", []),
        ({"phase": "ended", "end": "expired"}, Look.EXPIRED, "Expired [clock]", []),
        ({"phase": "ended", "end": "reclaimed"}, Look.RECLAIMED, "Reclaimed [clock]", []),
        ({"phase": "ended", "end": "cancelled"}, Look.CANCELLED, "Cancelled [clock]", []),
        ({"phase": "ended", "end": "failed"}, Look.FAILED, "Failed [clock]", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_state_has_its_icon_its_word_and_its_acts(changes, look, state, offered, a_view):
    """The table of states, row by row."""
    shown = card(a_view(**changes))
    assert (shown.look, said(shown.state), acts(shown)) == (look, state, offered)


def test_problem_of_its_processes_stands_before_what_is_missing(a_view):
    """A claim that stands still looks like any other, so it has to be said."""
    still = "Its scheduler, process 7, was stopped."
    shown = card(a_view(workers={"min": 0, "max": 2}, problem=still))
    assert (said(shown.lines[0].text), shown.lines[0].is_dim) == (still, False)
    assert len(shown.lines) == 2


def test_place_in_line_is_true_of_a_time_only(a_view):
    """It changes without an event, so it never looks live."""
    shown = card(a_view(phase="pending", wait={"place": 2, "reason": "All are in use."}))
    (figure,) = shown.figures
    assert (said(figure.value), said(figure.note)) == ("2nd", "as of [clock]")
    assert [said(line.text) for line in shown.lines] == ["All are in use."]


def test_thought_start_stands_beside_the_place(a_view):
    """No finer than it is known, with the late one, and whether it was learned."""
    starts = {"starts_at": NOW + timedelta(minutes=31), "starts_by": NOW + timedelta(minutes=50)}
    wait = {"place": 2, "reason": "All are in use.", **starts, "starts_learned": True}
    _, figure = card(a_view(phase="pending", wait=wait)).figures
    assert (figure.caption, said(figure.value)) == ("Start", "about [clock]")
    assert said(figure.note) == "by [clock] with nine in ten · learned from past claims"
    assert figure.value[1] == Moment(at=NOW + timedelta(minutes=34), form=Form.CLOCK)


def test_claim_that_can_never_start_has_no_place_in_line(a_view):
    """It says so instead."""
    never = "Not possible as the pool is: 9 devices wanted, 8 joined."
    wait = {"place": 1, "reason": never, "never": True}
    shown = card(a_view(phase="pending", wait=wait))
    assert shown.figures == ()
    assert said(shown.lines[0].text) == never


def test_device_is_named_by_host_and_index(a_view, a_lease):
    """The index is left out as long as nobody has told it."""
    view = a_view(leases=(a_lease("gpu-03", device="GPU-a"), a_lease("gpu-04", device="GPU-b")))
    shown = card(view, devices={"GPU-a": _device("GPU-a", index=5)})
    assert [row.place for row in shown.devices] == ["gpu-03 · 5", "gpu-04"]
    assert [row.memory for row in shown.devices] == ["80 GiB", ""]


def test_missing_workers_are_waited_for(a_view, a_lease):
    """And devices beyond the rows there are, are counted."""
    leases = tuple(a_lease("gpu-03", model="NVIDIA A100") for _ in range(MOST_ROWS + 2))
    shown = card(a_view(leases=leases, workers={"min": 1, "max": MOST_ROWS + 3}))
    assert len(shown.devices) == MOST_ROWS
    assert [said(line.text) for line in shown.lines] == ["and 2 more", "Waiting for 1 × A100 more"]


def test_ended_lease_is_no_device_of_the_claim(a_view, a_lease):
    """It is free again."""
    assert card(a_view(leases=(a_lease("gpu-03", phase="ended"),))).devices == ()


@pytest.fixture
def warned(a_view, a_lease):
    """The card of a claim of two devices under a warning."""

    def build(language: Language = Language.ENGLISH, **changes: object) -> Card:
        leases = (a_lease("h", model="A100"),) * 2
        return card(a_view(leases=leases, warning={**WARNING, **changes}), language)

    return build


@pytest.mark.parametrize(
    ("language", "what", "when", "why"),
    [
        (
            Language.ENGLISH,
            "Your 2 × A100 go back at [clock]",
            ", [left]. Results are kept.",
            "Idle for 15 min: no tasks, GPU 0 %, 31 GiB held. Rule interactive",
        ),
        (
            Language.CHINESE,
            "你的 2 × A100 将于 [clock] 回收",
            "，[left]。结果会保留。",
            "已闲置 15 分钟：无任务，GPU 0 %，占用 31 GiB。 规则 interactive",
        ),
    ],
)
def test_warning_says_what_when_and_why(language, what, when, why, warned):
    """In its reader's language, with the one primary button, which keeps the claim."""
    shown = warned(language)
    assert shown.notice is not None
    assert said(shown.notice.what) == what
    assert said(shown.notice.when) == when
    assert said(shown.notice.why) == why
    assert [button.is_primary for button in shown.notice.buttons] == [True, False]


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (
            {"ground": "little-used", "lasted_ms": 6 * 3_600_000, "quiet": []},
            "Hardly used in 6 h: GPU 0 % on the mean, 31 GiB held. Rule interactive",
        ),
        (
            {"ground": "orphaned", "gpu": None, "held_bytes": None, "wanted_by": ["c-1", "c-2"]},
            "Without kernel and client for 15 min: no tasks, 2 waiting for it. Rule interactive",
        ),
        (
            {"ground": "held-long", "gpu": None, "held_bytes": None, "quiet": []},
            "Held for 15 min. Rule interactive",
        ),
    ],
)
def test_every_ground_has_its_words(evidence, why, warned):
    """What is not known is not said."""
    notice = warned(evidence=EVIDENCE | evidence).notice
    assert notice is not None
    assert said(notice.why) == why


def test_what_others_need_is_told_by_its_reason(warned):
    """And cannot be kept."""
    notice = warned(evidence=None, action=None, keep=None).notice
    assert notice is not None
    assert said(notice.why) == "Long. Rule interactive"
    assert [button.act for button in notice.buttons] == [Act.RELEASE]


def test_shrinking_claim_keeps_its_fewest_workers(warned):
    """It says so instead of that all goes back."""
    notice = warned(action="shrink").notice
    assert notice is not None
    assert said(notice.what) == "The claim goes down to its fewest workers at [clock]"


@pytest.mark.parametrize(
    ("keep", "label", "is_off", "field"),
    [
        ({"longest_s": 7200}, "Keep 1 h", False, None),
        ({"longest_s": 1830}, "Keep 30 min", False, None),
        ({"longest_s": 1830, "asks_reason": True}, "Keep 30 min", False, "Reason"),
        ({"longest_s": 20}, "Keep 1 h", True, None),
    ],
)
def test_keep_offers_what_the_policy_still_allows(keep, label, is_off, field, warned):
    """With a field for the reason where one is asked for; off, with why, if nothing is left."""
    notice = warned(keep=keep).notice
    assert notice is not None
    button = notice.buttons[0]
    assert (button.act, button.label, button.is_off) == (Act.KEEP, label, is_off)
    assert (button.confirm and button.confirm.reason) == field
    assert (button.confirm and button.confirm.yes) == (field and label)


def test_release_says_beforehand_what_is_lost(a_view, a_lease):
    """It asks before it takes anything."""
    (_, release) = card(a_view(leases=(a_lease("h", model="A100"),) * 2)).foot
    assert release.confirm is not None
    assert release.confirm.question == "Release 2 × A100? What runs there is lost."


@pytest.mark.parametrize(
    ("language", "kept"),
    [
        (
            Language.ENGLISH,
            "42 results, 18 GiB, kept until [clock]; tasks submitted meanwhile wait.",
        ),
        (Language.CHINESE, "42 个结果，18 GiB，保留到 [clock]；期间提交的任务会等待。"),
    ],
)
def test_hibernated_claim_says_what_is_kept_and_until_when(language, kept, a_view):
    """With the one primary button, which has devices for it again."""
    keeping = {"held": 42, "held_bytes": 18 * 2**30}
    view = a_view(phase="hibernated", reason="As asked for.", expires_at=SOON, keeping=keeping)
    shown = card(view, language)
    assert [said(line.text) for line in shown.lines] == [kept, "As asked for."]
    (resume,) = shown.head
    assert (resume.act, resume.is_primary, resume.is_off) == (Act.RESUME, True, False)


def test_results_that_cannot_be_kept_are_named_beforehand(a_view):
    """The first few by their keys, and how many more."""
    unkept = [{"key": f"actor-{n}", "reason": "actor"} for n in range(5)]
    keeping = {"surveyed": True, "results": 9, "unkept": unkept, "unkept_count": 7}
    shown = card(a_view(warning=WARNING, keeping=keeping))
    assert said(shown.lines[0].text) == "Cannot be kept: actor-0, actor-1, actor-2 (+4)"


def test_limit_and_keep_stand_beside_the_age(a_view):
    """A keep that is over is not told."""
    view = a_view(expires_at=SOON, kept_until=SOON)
    assert said(card(view).state) == "Running [age] · until [clock] · kept until [clock]"
    assert said(card(a_view(kept_until=NOW)).state) == "Running [age]"


def test_silent_manager_makes_the_card_old(a_view):
    """What was true a while ago says when."""
    shown = card(a_view(), is_live=False)
    assert shown.is_old
    assert Moment(at=NOW, form=Form.CLOCK) in shown.note


def test_ended_claim_never_gets_old(a_view):
    """Nothing can change any more."""
    shown = card(a_view(phase="ended", end="released"), is_live=False)
    assert (shown.is_old, shown.note) == (False, ())


def test_reason_with_braces_is_only_words(a_view):
    """What users and hosts are called is never filled in again."""
    shown = card(a_view(name="{clock}", phase="ended", end="failed", reason="{age} {0} failed"))
    assert shown.label == "Claim {clock}, Failed"
    assert said(shown.lines[0].text) == "{age} {0} failed"


@pytest.mark.parametrize("phase", ["pending", "starting", "running", "hibernated", "ended"])
def test_every_language_has_its_own_words(phase, a_view):
    """Nothing of a card is left in another language but names and the pool's reasons."""
    cards = cards_in_json(Snapshot(view=a_view(phase=phase), devices={}, at=NOW), NOW)
    english, chinese = cards["en"], cards["zh-CN"]
    assert chinese["state"][0] != english["state"][0]
    assert all(one["label"] != two["label"] for one, two in _buttons(english, chinese))


def _buttons(one, two):
    return zip((*one["head"], *one["foot"]), (*two["head"], *two["foot"]), strict=True)


def _device(uuid: str, index: int) -> DeviceView:
    device = Device(uuid=uuid, index=index, model="A100", memory_bytes=80 * 2**30)
    return DeviceView.model_validate(
        {
            **dict.fromkeys(("host", "host_id"), "gpu-03"),
            "uuid": uuid,
            "device": device,
            "health": "healthy",
            "problem": "",
            "free": False,
            "leased": True,
        }
    )
