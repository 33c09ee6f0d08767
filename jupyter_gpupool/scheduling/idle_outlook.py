"""Which rule on idle claims is for a claim, and how far it is from what that rule does: in words.

For whoever asks why their claim is where it is; decides nothing.
"""

from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import IdleRule, Terms
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.units import format_duration

from .idle_runs import idle_gauge
from .idle_watch import Watch

_ACTIONS = {
    OnIdle.SHRINK: "goes down to its fewest workers",
    OnIdle.HIBERNATE: "hibernates",
    OnIdle.RELEASE: "ends",
}


def outlook_in_words(watch: Watch, rule: IdleRule | None, subject: Subject) -> str:
    """One sentence for the claim's user."""
    if rule is None:
        return "No rule on idle claims is for it."
    terms = rule.idle_terms(subject.wish)
    action = None if terms is None else rule.can_do(terms.action, subject)
    if terms is None or action is None:
        return f'Rule "{rule.name}" is for it, and takes nothing for being idle alone.'
    when = f"it is warned {_after(terms.warn_s)} and {_ACTIONS[action]} {_after(terms.after_s)}"
    wanted = ", if others wait for its devices" if rule.only_when_wanted else ""
    return f'By rule "{rule.name}" {when} of idleness{wanted}. {_so_far(watch, rule, terms)}'


def _so_far(watch: Watch, rule: IdleRule, terms: Terms) -> str:
    gauge = idle_gauge(rule)
    idle_ms = next((run.idle_ms for run in watch.runs if run.gauge == gauge), 0)
    if not idle_ms:
        return "It is not known to be idle now."
    left_s = terms.after_s - idle_ms / 1000
    so_far = f"It is idle for {format_duration(idle_ms / 1000)} now"
    return f"{so_far}: {format_duration(left_s)} are left." if left_s > 0 else f"{so_far}."


def _after(seconds: float) -> str:
    return f"after {format_duration(seconds)}" if seconds else "at once"
