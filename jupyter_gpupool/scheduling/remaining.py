"""When a claim that holds devices will have given them back, as far as anybody can know.

For reservations and estimates. A limit binds; what a claim is expected to take is only thought; of
one of which nothing is known, or that has taken longer than thought, it is taken that it goes on
for as long again as it has: so it is with the heavy tails that durations have (Lindy's law).
"""

from .pool_view import ClaimView

LEAST_S = 60.0
"""How long whatever runs is taken to go on at least, if no limit ends it sooner."""


def must_end_s(claim: ClaimView, now_s: float) -> float | None:
    """When a claim's limit ends it, if it has one; what waits is taken to start now."""
    if claim.time_limit_s is None:
        return None
    return _began(claim, now_s) + claim.time_limit_s


def should_end_s(claim: ClaimView, now_s: float, took_s: float | None = None) -> float:
    """When a claim is thought to end: by what is expected of it, and no later than its limit.

    Args:
        claim: One that holds devices, or starts now.
        now_s: The present.
        took_s: What to expect of it instead of what its view says.
    """
    began = _began(claim, now_s)
    expected_s = claim.expected_s if took_s is None else took_s
    ends_s = began if expected_s is None else began + expected_s
    if ends_s <= now_s:
        ends_s = now_s + max(LEAST_S, now_s - began)
    limit_s = must_end_s(claim, now_s)
    return ends_s if limit_s is None else min(ends_s, limit_s)


def will_have_ended_s(claim: ClaimView, now_s: float) -> float:
    """When a reservation may count on a claim's devices: its limit, else what is expected of it."""
    limit_s = must_end_s(claim, now_s)
    return should_end_s(claim, now_s) if limit_s is None else max(now_s, limit_s)


def _began(claim: ClaimView, now_s: float) -> float:
    return now_s if claim.started_s is None else claim.started_s
