"""Books made anew from what was carried out are those on which the pass ended."""

from carried_out import begun, freed
from hypothesis import given
from laws.pools import LAW, pools

from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.rounds import decide, plan
from jupyter_gpupool.scheduling.tree_shares import divide_tree


def _entered(view):
    ledger = Ledger(view)
    k = view.rules.usage_weight
    shares = divide_tree(view.tree, ledger.total, ledger.requests(), view.usage, k=k).shares
    ledger.set_shares(shares)
    return ledger


def _state(ledger):
    """Who holds what, and what is free, in the terms of the books."""
    bays = [(bay.whole, bay.held, bay.shared, bay.parts) for bay in ledger.inventory.bays]
    members = {
        member.view.id: sorted(ledger.named((*member.spots, *member.promised)))
        for member in ledger.members.values()
    }
    return ledger.held, ledger.firm, bays, members, ledger.inventory.cpu, ledger.inventory.memory


@LAW
@given(view=pools())
def test_books_made_anew_are_the_same(view):
    """After a crash the next pass starts from what this one decided, neither more nor less."""
    ledger = _entered(view)
    decided = decide(ledger)
    ended = {take.claim_id for take in decided.takes if take.how == "release"}
    after = _state(_entered(freed(begun(view, decided))))
    ours = _state(ledger)
    assert ours[:3] == after[:3]
    assert {name: held for name, held in ours[3].items() if name not in ended} == after[3]
    assert ours[4:] == after[4:]


@LAW
@given(view=pools())
def test_a_pass_leaves_the_pool_as_it_was(view):
    """Planning twice gives the same plan: nothing of a pass outlives it."""
    assert plan(view) == plan(view)
