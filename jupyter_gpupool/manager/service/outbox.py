"""What each host has been told to run, and what may be concluded from what it answers.

A lease is only free once the host has made so a `Desired` that no longer held it. Outboxes remember
since which generation each thing is no longer wanted.
"""

from collections.abc import Iterable, Iterator

from jupyter_gpupool.pool.ids import ClaimId, HostId, LeaseId
from jupyter_gpupool.protocol.link import Desired, WantedClaim

Key = ClaimId | LeaseId
"""A lease's worker, or by the claim's id its scheduler."""


class Outbox:
    """One host's `Desired`, whose generation grows only when its content changes."""

    def __init__(self) -> None:
        self.desired: Desired | None = None
        self._first = 0
        self._wanted: set[Key] = set()
        self._dropped: dict[Key, int] = {}

    def put(self, claims: tuple[WantedClaim, ...], generation: int) -> bool:
        """Take over what should run now; False if it is what was there before."""
        if self.desired is not None and self.desired.claims == claims:
            return False
        self._first = self._first or generation
        keys = set(_keys(claims))
        self._dropped |= dict.fromkeys(self._wanted - keys, generation)
        for key in keys:
            self._dropped.pop(key, None)
        self._wanted = keys
        self.desired = Desired(generation=generation, claims=claims)
        return True

    def is_dropped(self, key: Key, generation: int) -> bool:
        """Whether a host at this generation has been told to stop this.

        What this manager never wanted it dropped with its first word: it may have wanted it in an
        earlier life.
        """
        if self.desired is None or key in self._wanted:
            return False
        return generation >= self._dropped.get(key, self._first)

    def forget(self, key: Key) -> None:
        """Nobody will ask for this key again."""
        self._dropped.pop(key, None)


class Outboxes:
    """The outbox of every host, and the next generation.

    Args:
        boot: How often the manager has started on its database, so that generations never repeat.
    """

    def __init__(self, boot: int) -> None:
        self._generation = boot << 24
        self._of: dict[HostId, Outbox] = {}

    def of(self, host_id: HostId) -> Outbox:
        """The host's outbox, empty at first."""
        return self._of.setdefault(host_id, Outbox())

    def put(self, host_id: HostId, claims: tuple[WantedClaim, ...]) -> bool:
        """Take over what should run on a host; False if nothing changed."""
        changed = self.of(host_id).put(claims, self._generation + 1)
        self._generation += changed
        return changed

    def forget_host(self, host_id: HostId) -> None:
        """This host is no longer known; should it come back, it is told all anew."""
        self._of.pop(host_id, None)

    def forget(self, keys: Iterable[Key]) -> None:
        """Nobody will ask for these again."""
        for key in keys:
            for outbox in self._of.values():
                outbox.forget(key)


def _keys(claims: tuple[WantedClaim, ...]) -> Iterator[Key]:
    for claim in claims:
        if claim.scheduler is not None:
            yield claim.claim_id
        for worker in claim.workers:
            yield worker.lease_id
