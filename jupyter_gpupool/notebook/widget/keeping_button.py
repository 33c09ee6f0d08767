"""The button that keeps an idle claim, as far as the policy allows that now. Pure."""

from jupyter_gpupool.notebook.warned import KEPT_FOR_S, keep_minutes
from jupyter_gpupool.protocol.warned import KeepView

from .card import Act, Button, Confirm
from .idle_words import IdleWords

_WHOLE_MIN = int(KEPT_FOR_S) // 60


def keep_button(keep: KeepView | None, words: IdleWords) -> Button | None:
    """None if nobody can postpone it; shown but off if its user has used up what they may."""
    if keep is None:
        return None
    minutes = keep_minutes(keep)
    is_whole = minutes == _WHOLE_MIN or not minutes
    label = words.keep if is_whole else words.keep_minutes.format(minutes=minutes)
    return Button(
        act=Act.KEEP,
        label=label,
        title=_title(minutes, words),
        is_primary=True,
        is_off=not minutes,
        confirm=_asking(label, words) if keep.asks_reason else None,
    )


def _title(minutes: int, words: IdleWords) -> str:
    if not minutes:
        return words.used_up
    is_whole = minutes == _WHOLE_MIN
    return words.keep_title if is_whole else words.keep_minutes_title.format(minutes=minutes)


def _asking(label: str, words: IdleWords) -> Confirm:
    return Confirm(question=words.why_keep, yes=label, no=words.cancel, reason=words.reason)
