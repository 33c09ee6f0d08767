"""How long the agent leaves between two pieces of the same work: it must be heard in between.

Used by `host` for its turns and by `link` for its reports. Both look at all that runs here after
each change; with hundreds of claims there would be time for nothing else, and the manager would
take the host for lost.
"""

_SHORT_S = 0.002
_TIMES = 4
_MOST_S = 1.0
"""Also after one that took long because the agent itself was stopped."""


def rest_after(took_s: float) -> float:
    """Seconds of rest after work that took so many; none after what was short."""
    return min(_TIMES * took_s, _MOST_S) if took_s > _SHORT_S else 0.0
