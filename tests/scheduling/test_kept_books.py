"""Books that are kept decide what books made anew from a view of the same moment decide."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_world import LEAVES, World, a_host, a_tree

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.rules import Rules
from jupyter_gpupool.scheduling import kept_books, seeking
from jupyter_gpupool.scheduling.kept_books import KeptBooks
from jupyter_gpupool.scheduling.queues import user_leaf
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.shape import WorkerShape

_models = st.sampled_from(["", "a100", "h100"])
_whole = st.tuples(st.sampled_from([1, 1, 2]), _models).map(
    lambda drawn: WorkerShape(devices=drawn[0], model=drawn[1])
)
_parts = st.sampled_from([250, 500]).map(lambda share: WorkerShape(devices=0, share=share))


@st.composite
def _arrivals(draw: st.DrawFn) -> dict[str, object]:
    minimum = draw(st.integers(1, 4))
    return {
        "queue": draw(st.sampled_from(LEAVES)),
        "minimum": minimum,
        "maximum": minimum + draw(st.sampled_from([0, 0, 2])),
        "priority": draw(st.integers(0, 2)),
        "firm": draw(st.sampled_from([False, False, True])),
        "worker": draw(st.one_of(_whole, _whole, _parts)),
        "time_limit_s": draw(st.sampled_from([None, None, 200.0, 900.0, 5000.0])),
        "expected_s": draw(st.sampled_from([None, None, 150.0, 700.0])),
        "can_hibernate": draw(st.booleans()),
        "user": draw(st.sampled_from(["ann", "bob", "cyd"])),
    }


_amendments = st.tuples(
    st.integers(0, 99),
    st.sampled_from(
        [
            {"idle": True},
            {"idle": False},
            {"maximum": 5},
            {"priority": 1},
            {"scheduler_host": HostId("h0")},
            {"time_limit_s": 400.0},
        ]
    ),
)
_happenings = st.one_of(
    _arrivals(), _arrivals(), st.integers(0, 99), st.sampled_from("ft"), _amendments
)


@st.composite
def _worlds(draw: st.DrawFn) -> World:
    hosts = [
        a_host(f"h{n}", draw(st.integers(1, 4)), draw(st.sampled_from(["a100", "h100"])))
        for n in range(draw(st.integers(1, 3)))
    ]
    tree = a_tree(draw(st.sampled_from([0, 1000, 2000])), draw(st.sampled_from([2000, 9000])))
    rules = Rules(may_move=draw(st.booleans()), blocked_for_s=draw(st.sampled_from([200.0, 600.0])))
    leaves = [user_leaf(queue, user) for queue in LEAVES for user in ("ann", "bob", "cyd")]
    usage = {name: draw(st.sampled_from([0.0, 10.0, 500.0])) for name in (*LEAVES, *leaves)}
    return World(tree, {host.id: host for host in hosts}, rules, usage, draw(st.booleans()))


def _happen(
    world: World, what: dict[str, object] | tuple[int, dict[str, object]] | int | str
) -> None:
    if isinstance(what, dict):
        world.arrive(**what)
    elif isinstance(what, int):
        world.end(what)
    elif isinstance(what, tuple):
        which, terms = what
        world.amend(which, **terms)
    elif what == "f":
        world.free_all()
    world.advance()


@settings(deadline=None)
@given(_worlds(), st.lists(st.lists(_happenings, max_size=3), min_size=1, max_size=12))
def test_an_incremental_pass_equals_a_full_one(world: World, passes: list) -> None:
    """Whatever happens between passes, little is looked at and nothing is missed."""
    for happenings in passes:
        for what in happenings:
            _happen(world, what)
        full, kept = world.both()
        assert kept == full


@settings(deadline=None)
@given(_worlds(), st.lists(st.lists(_happenings, max_size=3), min_size=1, max_size=12))
def test_a_look_in_several_goes_equals_one_in_one_go(world: World, passes: list) -> None:
    """A pass that rests after each thing it looks at comes to what a full one does, only later."""
    world.effort = 1
    world.books = KeptBooks(world.view(), effort=1)
    for happenings in passes:
        for what in happenings:
            _happen(world, what)
        full, kept, _ = world.in_goes()
        assert replace(kept, unfinished=False) == full


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=_worlds(), passes=st.lists(st.lists(_happenings, max_size=3), min_size=1, max_size=8))
def test_a_full_pass_finds_nothing_once_kept_books_are_at_rest(
    monkeypatch: pytest.MonkeyPatch, world: World, passes: list
) -> None:
    """Where many wait, those are looked at whom an event concerns, and others in their turn."""
    for module in (seeking, kept_books):
        monkeypatch.setattr(module, "FEW", 0)
    world.books = KeptBooks(world.view(), searches=1, effort=1)
    for happenings in passes:
        for what in happenings:
            _happen(world, what)
        world.settle()
        assert plan(world.view()).changes_nothing
