"""Who gives back what it borrowed: only borrowers, only what is needed, and limits hold."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.ending_loans import Ended, Ground, Terms, Whose, loans_to_end
from jupyter_gpupool.scheduling.lending import Account, LendingBooks
from jupyter_gpupool.scheduling.lending_turns import Holding

ONE_KIND = [("devices", (0,))]
AMOUNTS = st.integers(0, 6)


def an_account(
    name: str,
    own: int,
    parent: str | None = "pool",
    *,
    weight: float = 1.0,
    lends: int = NO_LIMIT,
    borrows: int = NO_LIMIT,
) -> Account:
    return Account(name, parent, (own,), weight, (lends,), (borrows,))


def books_of(accounts: list[Account], holdings: list[Holding]) -> LendingBooks:
    books = LendingBooks([an_account("pool", 0, None), *accounts], ONE_KIND)
    for holding in holdings:
        books.use(holding.queue, holding.amount)
    return books


@st.composite
def lenders(draw):
    """Two departments with two teams each, and claims that fit when they were granted."""
    limit = st.one_of(st.just(NO_LIMIT), AMOUNTS)
    weight = st.sampled_from([0.0, 0.5, 1.0, 2.0])
    named = {"d": "pool", "e": "pool", "d1": "d", "d2": "d", "e1": "e", "e2": "e"}
    accounts = [
        an_account(
            name, draw(AMOUNTS), parent, weight=draw(weight), lends=draw(limit), borrows=draw(limit)
        )
        for name, parent in named.items()
    ]
    books, holdings = books_of(accounts, []), []
    for at in range(draw(st.integers(0, 12))):
        queue, amount = draw(st.sampled_from(["d1", "d2", "e1", "e2"])), (draw(st.integers(1, 3)),)
        if amount <= books.available(queue):
            books.use(queue, amount)
            holdings.append(Holding(f"c{at:02}", queue, amount, draw(st.integers(0, 1)), at))
    return books, holdings


@settings(max_examples=200)
@given(lenders(), st.data())
def test_use_and_free_undo_each_other(pool, data):
    """Whatever the limits on the way up, the books end as they began."""
    books, _ = pool
    before = dict(books.used)
    queue, amount = data.draw(st.sampled_from(["d1", "e2"])), (data.draw(AMOUNTS),)
    books.use(queue, amount)
    books.free(queue, amount)
    assert books.used == before


@settings(max_examples=200)
@given(lenders(), st.integers(1, 8), st.sampled_from(Whose))
def test_claimant_fits_without_the_ended_and_not_with_one(pool, asked, within):
    """Nobody gives back in vain, and nobody needlessly, but for the last asked."""
    books, holdings = pool
    claimant = Holding("claimant", "d1", (asked,), 1)
    ended = loans_to_end(books, holdings, claimant, Terms(within=within))
    for one in ended:
        books.free(one.holding.queue, one.holding.amount)
    assert not ended or books.available("d1") >= claimant.amount
    for one in ended[:-1]:
        books.use(one.holding.queue, one.holding.amount)
        assert books.available("d1") < claimant.amount
        books.free(one.holding.queue, one.holding.amount)


@settings(max_examples=200)
@given(lenders(), st.integers(1, 8))
def test_only_borrowers_of_other_queues_give_back(pool, asked):
    """Neither a queue within its own, nor one whose department is within its own, is asked."""
    books, holdings = pool
    ended = loans_to_end(books, holdings, Holding("claimant", "d1", (asked,)), Terms())
    for one in ended:
        for queue in books.path(one.holding.queue):
            if queue in books.path("d1"):
                break
            assert any(books.borrowed(queue))


def test_lending_limit_keeps_a_part_back():
    """Of four brought in and one lent at most, siblings see one."""
    books = books_of([an_account("a", 4, lends=1), an_account("b", 2)], [])
    assert books.available("b") == (3,)
    assert books.available("a") == (6,)


def test_borrowing_limit_binds():
    """However much is idle elsewhere, a queue borrows no more than its limit."""
    books = books_of([an_account("a", 9), an_account("b", 2, borrows=1)], [])
    assert books.available("b") == (3,)


def test_lender_takes_back_from_the_fullest():
    """Both others borrow; the one with the greater share gives back, by name among equals."""
    holdings = [
        *(Holding(f"b{n}", "b", (1,)) for n in range(5)),
        *(Holding(f"c{n}", "c", (1,)) for n in range(4)),
    ]
    books = books_of([an_account(name, 3) for name in "abc"], holdings)
    ended = loans_to_end(books, holdings, Holding("a0", "a", (1,)), Terms())
    assert ended == (Ended(holdings[0], Ground.LENDER),)


def test_equal_borrowers_leave_each_other_alone():
    """Taking would only swap who borrows more."""
    holdings = [Holding(f"b{n}", "b", (1,)) for n in range(3)]
    holdings += [Holding(f"a{n}", "a", (1,)) for n in range(3)]
    books = books_of([an_account("a", 1), an_account("b", 1), an_account("c", 4)], holdings)
    assert loans_to_end(books, holdings, Holding("a9", "a", (1,)), Terms()) == ()
