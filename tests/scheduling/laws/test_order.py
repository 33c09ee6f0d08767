"""What must not matter: in which order things are listed, and what they are called."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from laws.pools import LAW, pools

from jupyter_gpupool.scheduling.queues import link
from jupyter_gpupool.scheduling.rounds import plan


@LAW
@given(view=pools(), seed=st.integers(0, 99))
def test_the_order_of_the_input_does_not_matter(view, seed):
    """The same pool gives the same plan, however its hosts and claims are listed."""
    shuffled = replace(
        view,
        hosts=tuple(random.Random(seed).sample(view.hosts, len(view.hosts))),
        claims=tuple(random.Random(seed).sample(view.claims, len(view.claims))),
    )
    assert plan(shuffled) == plan(view)


@LAW
@given(view=pools())
def test_the_names_of_claims_do_not_matter(view):
    """Where no two claims are of one age, their names decide nothing."""
    old = {f"x{9 - n}": claim.id for n, claim in enumerate(view.claims)}
    new = {name: renamed for renamed, name in old.items()}
    renamed = replace(view, claims=tuple(replace(c, id=new[c.id]) for c in view.claims))
    assert _outcome(plan(renamed), old) == _outcome(plan(view), {})


@LAW
@given(view=pools())
def test_the_names_of_queues_do_not_matter(view):
    """Where no two queues were created together, their names decide nothing."""
    old = {f"x{99 - n}": name for n, name in enumerate(view.tree.queues)}
    new = {name: renamed for renamed, name in old.items()}
    queues = (
        replace(q, name=new[q.name], parent=None if q.parent is None else new[q.parent])
        for q in view.tree.queues.values()
    )
    renamed = replace(
        view,
        tree=link(view.tree.kinds, queues),
        claims=tuple(replace(c, queue=new[c.queue]) for c in view.claims),
        usage={new[name]: used for name, used in view.usage.items()},
    )
    assert _outcome(plan(renamed), {}) == _outcome(plan(view), {})


def _outcome(decided, claims):
    """Who gets and gives what, under its old name; sentences left out, for they name queues."""
    given_out = [(claims.get(g.claim_id, g.claim_id), g.workers) for g in decided.grants]
    promised = [(claims.get(p.claim_id, p.claim_id), p.workers) for p in decided.promises]
    taken = [
        (claims.get(t.claim_id, t.claim_id), t.workers, claims.get(t.claimant, t.claimant))
        for t in decided.takes
    ]
    waits = [(claims.get(w.claim_id, w.claim_id), w.place, w.constraint) for w in decided.waits]
    return sorted(given_out), sorted(promised), sorted(taken), sorted(waits)
