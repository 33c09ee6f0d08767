"""How long a scheduling pass takes, at full size and as pools grow, beside Slurm on as many nodes.

    python tests/benchmarks/scheduling_pass.py [--json] [--pools 6] [--events 200] [--jobs 100]

10,000 devices on 1,250 hosts, 80 % held, 1,000 queues in three levels, 5,000 claims that wait. A
full pass divides all shares anew and looks at everybody, in books that stand. An incremental one
follows one arrival or one end in a full pool, with reservations for those who wait for long; what
it leaves for the next ones is timed apart. Times are processor time, the best of three for a
full pass, lest what else the machine does count; the tables have the clock's too.
"""

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from big_pool import FULL, SMALL, Size, a_pool, an_arrival
from harness import Figure, Target, finish, note, options, table
from peers import slurm

from jupyter_gpupool.scheduling.kept_books import KeptBooks
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import decide
from jupyter_gpupool.scheduling.tree_shares import divide_tree

_GROWTH = (
    Size(hosts=12, queues=(2, 2, 2), pending=50),
    Size(hosts=40, queues=(3, 3, 3), pending=160),
    Size(hosts=125, queues=(5, 5, 4), pending=500),
    Size(hosts=400, queues=(7, 7, 7), pending=1600),
    FULL,
)
_SEARCHES, _EFFORT = 4, 2000
"""For so many kinds of claims an incremental pass looks for room, and looks at so many claims; the
next one goes on. As the manager has it."""


@dataclass(slots=True)
class Times:
    """Some runs of one thing, by processor and by clock."""

    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], object]) -> None:
        """Do it once more."""
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        work()
        self.cpu_s.append(time.process_time() - cpu_s)
        self.wall_s.append(time.perf_counter() - wall_s)

    def row(self, name: str) -> tuple[str, ...]:
        """As a line of a table, in milliseconds."""
        cells = (statistics.median(self.cpu_s), p99(self.cpu_s), p99(self.wall_s))
        return (name, str(len(self.cpu_s)), *(f"{cell * 1e3:.2f}" for cell in cells))


HEADS = ("milliseconds", "runs", "median", "p99", "p99 by clock")


def p99(values: Sequence[float]) -> float:
    """The value that 99 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


def main() -> None:
    chosen = options(__doc__ or "", more=_options)
    # Drawn one after the other: pools that only lie about make the collection of garbage longer.
    parts = full_passes(a_pool(FULL, seed=chosen.seed + number) for number in range(chosen.pools))
    table("Full passes at full size", HEADS, [t.row(n) for n, t in parts.items()])
    growth = grow()
    events = incremental(
        a_pool(FULL, seed=chosen.seed), chosen.events, searches=_SEARCHES, effort=_EFFORT
    )
    table("Passes on kept books at full size", HEADS, [t.row(n) for n, t in events.items()])
    small_per_s = small_pool()
    peer = beside_slurm(chosen.jobs)
    finish(_figures(parts, growth, events, small_per_s, peer), as_json=chosen.json)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pools", type=int, default=6, help="pools drawn (default 6)")
    parser.add_argument("--events", type=int, default=200, help="arrivals and ends (default 200)")
    parser.add_argument("--jobs", type=int, default=100, help="jobs for Slurm (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the first pool (default 1)")


_PASS, _TOLD, _BOOKS = "full pass", "the same with every reason", "books from a view"
_EACH = "full pass, not the best of three but each"


def full_passes(views: Iterable[PoolView], *, best_of: int = 3) -> dict[str, Times]:
    """Time what a full pass consists of, and what else may be wanted of it: the best of three."""
    parts = {name: Times() for name in (_PASS, _EACH, _TOLD, _BOOKS)}
    for view in views:
        tries = {name: Times() for name in (_PASS, _TOLD, _BOOKS)}
        for _ in range(best_of):
            tries[_BOOKS].run(partial(Ledger, view))
            for name, explain in ((_PASS, False), (_TOLD, True)):
                ledger = Ledger(view)
                tries[name].run(partial(_whole_pass, ledger, explain=explain))
        for name, times in tries.items():
            parts[name].cpu_s.append(min(times.cpu_s))
            parts[name].wall_s.append(min(times.wall_s))
        parts[_EACH].cpu_s += tries[_PASS].cpu_s
        parts[_EACH].wall_s += tries[_PASS].wall_s
    return parts


def _whole_pass(ledger: Ledger, *, explain: bool) -> None:
    division = divide_tree(ledger.tree, ledger.total, ledger.requests())
    ledger.set_shares(division.shares)
    decide(ledger, explain=explain)


def grow() -> float:
    """Print full passes as pools grow, and give how the largest stands to n log n of the least."""
    rows, found = list[tuple[object, ...]](), list[float]()
    for size in _GROWTH:
        each_s = full_passes([a_pool(size, seed=1)])[_PASS].cpu_s[0]
        weight = size.devices * math.log(size.devices)
        found.append(each_s / weight)
        rows.append((size.devices, size.pending, f"{each_s * 1e3:.1f}", f"{found[-1] * 1e6:.2f}"))
    table("Growth", ("devices", "waiting", "ms a full pass", "µs by n log n"), rows)
    return found[-1] / found[0]


def incremental(
    view: PoolView, events: int, *, searches: int, effort: int | None
) -> dict[str, Times]:
    """Time single arrivals and ends in a full pool at rest, and the passes that go on after them.

    A second passes before each event, so that what is kept for others has to be looked at anew.
    """
    books = KeptBooks(view, searches=searches, effort=effort)
    draws, names = random.Random(1), count(10**6)
    while books.decide().unfinished:
        pass
    times = {name: Times() for name in ("one arrival", "one end", "going on", "until at rest")}
    for _ in range(events):
        claim = an_arrival(view.tree, draws, next(names))
        arrived = replace(claim, since_s=books.ledger.now_s)
        _after(books, times, "one arrival", partial(books.arrive, arrived))
        holding = [m.view.id for m in books.ledger.members.values() if m.spots]
        _after(books, times, "one end", partial(books.end, draws.choice(holding)))
    return times


def _after(
    books: KeptBooks, times: dict[str, Times], name: str, happen: Callable[[], object]
) -> None:
    """Let something happen, and take passes until there is nothing left to look for."""
    unfinished = True

    def go_on() -> None:
        nonlocal unfinished
        unfinished = books.decide().unfinished

    def first() -> None:
        books.advance(books.ledger.now_s + 1.0)
        happen()
        go_on()

    def rest() -> None:
        while unfinished:
            times["going on"].run(go_on)

    times[name].run(first)
    times["until at rest"].run(rest)


def small_pool(*, events: int = 1000) -> float:
    """Passes per second as a replay of a small pool takes them: one for each arrival and end."""
    view = a_pool(SMALL, seed=1)
    times = incremental(view, events, searches=view.rules.most_searches, effort=None)
    spent_s = sum(sum(times[name].cpu_s) for name in ("one arrival", "one end"))
    note(f"\nA pool of {SMALL.devices} devices: {2 * events / spent_s:.0f} passes a second.")
    return 2 * events / spent_s


def beside_slurm(jobs: int) -> slurm.SlurmTimes | None:
    """Let Slurm decide on as many devices, nothing waiting there, which is easier."""
    if not slurm.is_there():
        note(f"\nLeft out: Slurm is not there (apt-get install {slurm.PACKAGES}).")
        return None
    try:
        found = slurm.measure(nodes=FULL.hosts, each=FULL.per_host, jobs=jobs)
    except (RuntimeError, OSError) as error:
        note(f"\nLeft out: Slurm did not run here ({error}).")
        return None
    rows = [
        (name, len(of), f"{statistics.median(of) * 1e3:.1f}", f"{p99(of) * 1e3:.1f}")
        for name, of in (
            ("salloc to its grant", found.latencies_s),
            ("of that, the controller's decision", found.decisions_s),
        )
    ]
    title = f"Slurm: {found.nodes} nodes, {found.devices} devices, 80 % held, nobody waiting"
    table(title, ("milliseconds", "jobs", "median", "p99"), rows)
    return found


def _figures(
    parts: dict[str, Times],
    growth: float,
    events: dict[str, Times],
    small_per_s: float,
    peer: slurm.SlurmTimes | None,
) -> list[Figure]:
    one = [*events["one arrival"].cpu_s, *events["one end"].cpu_s]
    full, told, books = parts[_PASS].cpu_s, parts[_TOLD].cpu_s, parts[_BOOKS].cpu_s
    anew = list(map(sum, zip(full, books, strict=True)))
    reasons = [max(0.0, more - less) for more, less in zip(told, full, strict=True)]
    return [
        Figure(
            key="full_p99_s",
            meaning="full pass, p99, seconds",
            value=p99(full),
            target=Target(bound=0.150),
        ),
        Figure(
            key="reasons_p99_s",
            meaning="every reason on top, p99, seconds",
            value=p99(reasons),
            target=Target(bound=0.050),
        ),
        Figure(
            key="anew_p99_s",
            meaning="full pass with its books made anew, p99, seconds",
            value=p99(anew),
        ),
        Figure(
            key="incremental_p99_s",
            meaning="pass after one arrival or end, p99, seconds",
            value=p99(one),
            target=Target(bound=0.005),
        ),
        Figure(
            key="growth_by_n_log_n",
            meaning="100 to 10,000 devices, by n log n",
            value=growth,
            target=Target(bound=1.0),
        ),
        Figure(
            key="small_pool_passes_per_s",
            meaning="passes per second, small pool",
            value=small_per_s,
            target=Target(bound=1000, at_most=False),
        ),
        Figure(
            key="decisions_per_s",
            meaning="arrivals decided per second, at full size",
            value=1 / statistics.mean(events["one arrival"].cpu_s),
        ),
        Figure(
            key="slurm_decisions_per_s",
            meaning="the same, Slurm",
            value=peer.decisions_per_s if peer else None,
        ),
        Figure(
            key="slurm_latency_p99_s",
            meaning="Slurm's submit to decision, p99, seconds",
            value=p99(peer.latencies_s) if peer else None,
        ),
    ]


if __name__ == "__main__":
    main()
