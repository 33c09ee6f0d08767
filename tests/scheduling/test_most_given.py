"""What is counted before a search never keeps anybody from what a search would find."""

from hypothesis import given
from laws.pools import LAW, pools

from jupyter_gpupool.scheduling.making_room import make_room
from jupyter_gpupool.scheduling.most_given import MostGiven, might_be_enough
from jupyter_gpupool.scheduling.protected import is_protected
from jupyter_gpupool.scheduling.reclaiming import Asking
from jupyter_gpupool.scheduling.rounds import books_of
from jupyter_gpupool.scheduling.shape import ONE_DEVICE
from jupyter_gpupool.scheduling.victims import Holders, asked_in_turn


@LAW
@given(view=pools())
def test_whoever_finds_room_was_let_look(view):
    """Asked are all who may be, whatever was counted of them."""
    ledger = books_of(view)
    holders = Holders(ledger)
    for member in [m for m in ledger.members.values() if m.needs and not m.promised]:
        asking = Asking(holders, member, member.needs)
        if not asking.is_entitled() or not asking.somebody_owes():
            continue
        asked = asked_in_turn(holders, asking.below)
        pieces = (piece for piece in asked if not is_protected(ledger, piece.member, member))
        room = make_room(ledger, member, pieces, lambda *_: True, may_move=True)
        assert room is None or might_be_enough(ledger, member, asking.most_given())
        assert room is None or asking.is_of_use() or not (room.taken or room.moved)


@LAW
@given(view=pools())
def test_counts_follow_every_change(view):
    """What was forgotten along the path of a claim is counted anew, and nothing else need be."""
    ledger = books_of(view)
    holders = Holders(ledger)
    for member in [m for m in ledger.members.values() if m.spots and not m.view.firm]:
        before = [
            holders.most_given.devices(queue, ONE_DEVICE) for queue in range(len(ledger.names))
        ]
        ledger.take(member, member.spots[:1])
        holders.changed(member)
        fresh = MostGiven(ledger, holders.members)
        counted = [fresh.devices(queue, ONE_DEVICE) for queue in range(len(ledger.names))]
        kept = [holders.most_given.devices(queue, ONE_DEVICE) for queue in range(len(ledger.names))]
        assert kept == counted
        assert all(now <= then for now, then in zip(kept, before, strict=True))
