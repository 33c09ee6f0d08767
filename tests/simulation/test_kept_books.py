"""Books that are kept decide as books made anew for every pass: incremental equals full."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpupool.simulation.made_anew import MadeAnew
from jupyter_gpupool.simulation.scheduler import KeptBooks
from jupyter_gpupool.simulation.simulate import replay


@st.composite
def claims(draw):
    """Claims of a few sizes, and how much each may grow.

    Times are whole and devices powers of two, so that no sum is rounded.
    """
    return [
        (
            {
                "at_s": draw(st.integers(0, 60)) * 10,
                "for_s": draw(st.sampled_from([5, 40, 150, 700])),
                "queue": draw(st.sampled_from(["text", "vision"])),
                "each": draw(st.sampled_from([1, 1, 2, 4])),
                "workers": draw(st.sampled_from([1, 1, 2])),
                "can_hibernate": draw(st.sampled_from([True, True, False])),
                "priority": draw(st.sampled_from([0, 0, 1])),
            },
            draw(st.sampled_from([0, 0, 1, 2])),
        )
        for _ in range(draw(st.integers(1, 14)))
    ]


GUARANTEES = st.fixed_dictionaries({"text": st.integers(0, 4), "vision": st.integers(0, 4)})


@settings(max_examples=60, deadline=None)
@given(claims(), GUARANTEES)
def test_kept_books_decide_as_new_ones(an_arrival, a_scheduler, asked, guarantees):
    """The whole course of every claim is the same, and as many passes are taken."""
    arrivals = [
        an_arrival(f"c{n:02}", most=terms["workers"] + more, **terms)
        for n, (terms, more) in enumerate(asked)
    ]
    kept, anew = (
        replay(arrivals, a_scheduler(kind, hosts=2, devices=4, **guarantees), hibernate_cost_s=20)
        for kind in (KeptBooks, MadeAnew)
    )
    assert kept == anew
