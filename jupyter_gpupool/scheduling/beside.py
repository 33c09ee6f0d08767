"""Who has room beside what is kept for others, before anybody is served.

Asked by a pass with reservations, once it is known who would fit if nothing were kept. The line
then holds those alone who could be served: most who wait could not.
"""

from collections.abc import Container, Iterable

from jupyter_gpupool.pool.ids import ClaimId

from .bounds import Hindrance
from .fitting import Sifted
from .kept import Kept
from .ledger import Member


def sift_beside(kept: Kept, sifted: Sifted) -> Sifted:
    """Part those with room beside what is kept from all others, and say what these met."""
    might = _who_might_now(kept, sifted.fitting)
    left = who_might(kept, sifted.fitting, might)
    ids = {member.view.id for member in left}
    met = (
        Hindrance(member, kept.constraint(member, member.needs))
        for member in sifted.fitting
        if member.view.id not in ids
    )
    return Sifted(left, [*sifted.hindered, *met])


def _who_might_now(kept: Kept, fitting: Iterable[Member]) -> set[ClaimId]:
    # Those alike have room on what is open to everybody together or not at all.
    is_open: dict[tuple[int, int], bool] = {}
    for member in fitting:
        alike = member.alike, member.needs
        if alike not in is_open:
            is_open[alike] = kept.is_open_to(member, member.needs)
    return {m.view.id for m in fitting if is_open[m.alike, m.needs] or kept.might_place(m, m.needs)}


def who_might(kept: Kept, fitting: Iterable[Member], might: Container[ClaimId]) -> list[Member]:
    """Those who have room, or will have once others start.

    Args:
        kept: What is kept.
        fitting: Who would fit if nothing were.
        might: Those of them who have room now.
    """
    members = list(fitting)
    reserved = (each.holder for each in kept.reservations if each.holder is not None)
    if any(m.view.id in might and not kept.is_due(m) for m in reserved):
        # Whoever starts elsewhere than where it reserved leaves room to all who come after it.
        return members
    # Whoever starts on a part of what is kept opens the rest of that device to its own people.
    opens = any(m.view.worker.share for m in members if m.view.id in might)
    return [m for m in members if m.view.id in might or (opens and m.view.worker.share)]
