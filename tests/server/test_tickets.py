"""Tickets to a dashboard: for one claim, and for as long as somebody looks at it."""

from jupyter_gpupool.server.tickets import LIFE_S, Tickets


def test_a_ticket_admits_to_its_own_claim_alone() -> None:
    """The same secret under another claim's path is worth nothing."""
    tickets = Tickets()
    secret = tickets.issue("c-1", 0)
    assert tickets.admits(secret, "c-1", 1)
    assert not tickets.admits(secret, "c-2", 1)


def test_what_was_never_issued_admits_nobody() -> None:
    """Nor does nothing at all."""
    assert not Tickets().admits("guessed", "c-1", 0)


def test_a_ticket_left_alone_is_void() -> None:
    """It may lie in a history or a log by then."""
    tickets = Tickets()
    secret = tickets.issue("c-1", 0)
    assert not tickets.admits(secret, "c-1", LIFE_S + 1)


def test_using_a_ticket_prolongs_it() -> None:
    """A page that is open keeps working."""
    tickets = Tickets()
    secret = tickets.issue("c-1", 0)
    assert tickets.admits(secret, "c-1", LIFE_S)
    assert tickets.admits(secret, "c-1", 2 * LIFE_S)


def test_tickets_are_not_kept_without_end() -> None:
    """Whoever opens pages all day costs no more than a thousand of them."""
    tickets = Tickets()
    first = tickets.issue("c-1", 0)
    for _ in range(1000):
        last = tickets.issue("c-1", 1)
    assert not tickets.admits(first, "c-1", 1)
    assert tickets.admits(last, "c-1", 1)


def test_a_ticket_is_not_shown_by_its_repr() -> None:
    """It could get into a log."""
    tickets = Tickets()
    assert tickets.issue("c-1", 0) not in repr(tickets)
