"""What the pool answers: an ordinary value that shows itself."""

from collections.abc import Callable
from typing import Any

import pytest

from jupyter_gpupool.notebook.answers import (
    Claims,
    Environments,
    Explanation,
    Logs,
    PoolStatus,
    claim_as_it_was,
)
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.using import EnvironmentView

EVIL = "<script>alert(1)</script>"
View = Callable[..., ClaimView]


def an_environment(**changes: Any) -> EnvironmentView:
    return EnvironmentView.model_validate({"name": "default", "hosts": ["gpu-1"], **changes})


def an_explanation(**changes: Any) -> Explanation:
    said = {"claim": "c-1", "name": "mine", "phase": "pending", "reason": "All are in use."}
    return Explanation.model_validate({**said, **changes})


def test_claims_are_a_table_and_a_sequence(a_view: View) -> None:
    """Views as ever, with a view of their own."""
    claims = Claims([a_view(name="first"), a_view(name="second", phase="pending")])
    assert [view.name for view in claims] == ["first", "second"]
    assert claims[1].phase == "pending"
    assert repr(claims).splitlines()[1].split()[:2] == ["first", "running"]


def test_table_is_as_wide_as_its_texts(a_view: View) -> None:
    """A Chinese name takes two columns a character."""
    lines = repr(Claims([a_view(name="训练"), a_view(name="test")])).splitlines()
    assert lines[1].index("running") == lines[2].index("running") - 2


@pytest.mark.parametrize("listing", [Claims(), Environments()])
def test_nothing_is_a_sentence(listing: Any) -> None:
    """Instead of an empty table."""
    assert repr(listing).endswith(".")
    assert "<table" not in listing._repr_html_()


def test_environment_tells_what_it_has() -> None:
    """And which one a claim gets that names none."""
    versions = {"python": "3.12.4", "cloudpickle": "3.1.0"}
    listed = Environments([an_environment(is_default=True, versions=versions)])
    assert "default (default)" in repr(listed)
    assert "python 3.12.4" in repr(listed)


def test_explanation_begins_with_place_and_estimate() -> None:
    """And goes on with the manager's sentences."""
    told = repr(an_explanation(place=2, lines=["All 8 A100 are in use.", "1 is ahead of you."]))
    assert told.splitlines() == [
        "Claim mine: pending, 2nd in line",
        "All 8 A100 are in use.",
        "1 is ahead of you.",
    ]


def test_explanation_without_sentences_gives_the_reason() -> None:
    """It never says nothing."""
    assert repr(an_explanation()).endswith("All are in use.")


def test_logs_cannot_drive_a_terminal() -> None:
    """User code writes them."""
    lines = ["\x1b[31mred\x1b[0m", "a\x07b\tc", "\x9b2J"]
    logs = Logs.model_validate(
        {"claim": "c-1", "processes": [{"process": "l-1", "host": "gpu-1", "lines": lines}]}
    )
    assert repr(logs).splitlines() == ["── worker l-1 on gpu-1", "red", "a?b\tc", "?2J"]


def test_missing_log_says_why() -> None:
    """In its place."""
    logs = Logs.model_validate(
        {"claim": "c-1", "processes": [{"process": "scheduler", "host": "", "problem": "Gone."}]}
    )
    assert repr(logs).splitlines() == ["── scheduler", "Gone."]
    assert repr(Logs.model_validate({"claim": "c-1"})) == "There is no log yet."


def test_nothing_that_is_shown_becomes_markup(a_view: View) -> None:
    """Every text is somebody else's."""
    log = {"process": EVIL, "host": EVIL, "lines": [EVIL], "problem": EVIL}
    shown: list[Any] = [
        Claims([a_view(name=EVIL, reason=EVIL)]),
        Environments([an_environment(name=EVIL, hosts=[EVIL], problem=EVIL)]),
        an_explanation(name=EVIL, lines=[EVIL]),
        Logs.model_validate({"claim": "c-1", "processes": [log]}),
    ]
    for each in shown:
        assert "<script" not in each._repr_html_()
        assert "&lt;script&gt;" in each._repr_html_()


def test_claim_is_shown_as_its_card(a_view: View) -> None:
    """And is the view it was: what `release` and `scale` answer ends many a cell."""
    claim = claim_as_it_was(a_view(name="mine"))
    assert repr(claim).startswith("gpupool claim mine: running")
    assert claim._repr_html_().startswith("<article")
    assert claim.name == "mine"


def test_status_is_told_in_three_lines() -> None:
    """What there is, what runs, who you are."""
    counts = dict.fromkeys(
        ("hosts", "devices", "free", "waiting", "running", "my_claims", "seq"), 2
    )
    who = {"version": "1", "user": "ada", "role": "user", "simulated": True}
    status = PoolStatus.model_validate({**counts, **who})
    still = status.model_copy(update={"problems": ("Claim a: Its scheduler was stopped.",)})
    assert repr(still).splitlines()[2] == "Claim a: Its scheduler was stopped."
    assert repr(status).splitlines() == [
        "2 simulated devices on 2 hosts, 2 free",
        "2 claims running, 2 waiting, 2 yours",
        "You are ada (user); the manager is version 1.",
    ]
