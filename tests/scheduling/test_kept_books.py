"""Books that are kept decide what books made anew from a view of the same moment decide."""

from hypothesis import given, settings
from hypothesis import strategies as st
from kept_world import LEAVES, World, a_host, a_tree

from jupyter_gpupool.pool.rules import Rules
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
    }


_happenings = st.one_of(_arrivals(), _arrivals(), st.integers(0, 99), st.sampled_from("ft"))


@st.composite
def _worlds(draw: st.DrawFn) -> World:
    hosts = [
        a_host(f"h{n}", draw(st.integers(1, 4)), draw(st.sampled_from(["a100", "h100"])))
        for n in range(draw(st.integers(1, 3)))
    ]
    tree = a_tree(draw(st.sampled_from([0, 1000, 2000])), draw(st.sampled_from([2000, 9000])))
    rules = Rules(may_move=draw(st.booleans()))
    return World(tree, {host.id: host for host in hosts}, rules)


def _happen(world: World, what: dict[str, object] | int | str) -> None:
    if isinstance(what, dict):
        world.arrive(**what)
    elif isinstance(what, int):
        world.end(what)
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
