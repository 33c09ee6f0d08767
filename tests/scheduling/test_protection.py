"""Whose minimum runtime counts between two claims."""

import pytest

from jupyter_gpupool.scheduling.amounts import DEVICES
from jupyter_gpupool.scheduling.protection import protected_s
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue


@pytest.fixture
def tree():
    """A company of two departments, one with two teams."""
    rows = [
        ("company", None, 900, None),
        ("research", "company", None, 50),
        ("vision", "research", 60, None),
        ("speech", "research", None, 70),
        ("sales", "company", 0, None),
        ("guests", None, None, None),
    ]
    return grow(
        (DEVICES,),
        [
            Queue(
                name=name,
                parent=parent,
                guarantee=(0,),
                limit=(0,),
                reclaim_min_runtime_s=reclaim,
                own_min_runtime_s=own,
            )
            for name, parent, reclaim, own in rows
        ],
    )


@pytest.mark.parametrize(
    ("claimant", "victim", "seconds", "because"),
    [
        ("speech", "vision", 60, "vision is the victim's side below research"),
        ("vision", "speech", 900, "speech and research say nothing, the company does"),
        ("sales", "vision", 900, "research is the victim's side, not vision"),
        ("vision", "sales", 0, "sales says 0, which is a setting"),
        ("guests", "vision", 900, "only the pool holds both: the top of the victim's path counts"),
        ("vision", "guests", 5, "nobody says anything: the default"),
        ("research", "vision", 60, "a claim of research stands beside vision's"),
        ("vision", "research", 900, "the inner queue's own claims stand one level up"),
    ],
)
def test_victims_side_decides(tree, claimant, victim, seconds, because):
    """Below the lowest common ancestor, the victim's side is asked first, then those above."""
    assert protected_s(tree, claimant=claimant, victim=victim, default_s=5) == seconds, because


@pytest.mark.parametrize(("queue", "seconds"), [("speech", 70), ("vision", 50), ("sales", 5)])
def test_own_setting_counts_within_queue(tree, queue, seconds):
    """Between two claims of one queue the other setting is asked, from the queue on up."""
    assert protected_s(tree, claimant=queue, victim=queue, default_s=5) == seconds
