"""When something is due without anybody asking: time limits, slow starts, hosts that are gone.

All on monotonic time, so that a clock set back or forth ends nothing early and keeps nothing
alive; windows of reservations alone are moments of the calendar, and move with its clock. The
service follows each commit with `follow`; the timer asks for what is due.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.scheduling.reservations import moments_of

from .books import Books
from .desired import excess
from .giving_up import FAILURE_WINDOW_S, MOST_FAILURES
from .kept_pool import Passed
from .reserving import bookings_of

if TYPE_CHECKING:
    from .records import AnnouncedKey

_LOOK_AGAIN_S = 30.0
_GRACE = 1 / 3
"""Of `host_lost_after_s`: what a host gets after its link broke, however long it was silent."""


class Deadlines:
    """What is due when, by monotonic seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.expiry: dict[ClaimId, float] = {}
        self.start: dict[tuple[ClaimId, int], float] = {}
        self.gone: dict[HostId, float] = {}
        self.lost: dict[HostId, float] = {}
        self.shrink: dict[ClaimId, float] = {}
        self.retire: dict[ClaimId, float] = {}
        self.hibernate: dict[ClaimId, float] = {}
        self.retry: dict[ClaimId, float] = {}
        self.taken: dict[ClaimId, float] = {}
        self.look_again: dict[None, float] = {}
        self.windows: dict[None, float] = {}
        self.announced: dict[AnnouncedKey, float] = {}
        self.idle: dict[ClaimId, float] = {}
        self._starting: dict[ClaimId, tuple[int, datetime]] = {}
        self._excess: dict[ClaimId, int] = {}
        self._ends: dict[ClaimId, datetime] = {}

    def earliest(self) -> float | None:
        """When the next thing is due."""
        of_leases = (self.shrink, self.retire, self.retry, self.taken)
        of_claims = (self.expiry, self.hibernate, self.idle, *of_leases)
        of_hosts = (self.gone, self.lost)
        times = [time for kind in (*of_claims, *of_hosts) for time in kind.values()]
        of_bookings = (*self.windows.values(), *self.announced.values())
        others = (*self.start.values(), *self.look_again.values(), *of_bookings)
        return min((*times, *others), default=None)

    def follow_claims(
        self, claim_ids: Iterable[ClaimId], books: Books, now: datetime, monotonic_s: float
    ) -> None:
        """Set and clear what these claims have to fear."""
        for claim_id in claim_ids:
            self._follow_expiry(claim_id, books, now, monotonic_s)
            self._follow_start(claim_id, books, monotonic_s)
            self._follow_shrink(claim_id, books, monotonic_s)
            self._follow_hibernation(claim_id, books, monotonic_s)
            self._follow_retry(claim_id, books)
            self._follow_taken(claim_id, books, now, monotonic_s)

    def follow_watches(self, claim_ids: Iterable[ClaimId], books: Books) -> None:
        """When something may be due by a rule on idle claims: its hosts are then asked."""
        for claim_id in claim_ids:
            watched = books.watches.get(claim_id)
            if watched is None or watched.next_s is None:
                self.idle.pop(claim_id, None)
            else:
                self.idle[claim_id] = watched.next_s

    def follow_hosts(
        self, host_ids: Iterable[HostId], books: Books, heard_s: float, monotonic_s: float
    ) -> None:
        """A silent host is lost some time after it was last heard, and not without a grace."""
        after_s = self._settings.host_lost_after_s
        for host_id in host_ids:
            host = books.hosts.get(host_id)
            if host is not None and host.phase is HostPhase.SILENT:
                due = max(heard_s + after_s, monotonic_s + after_s * _GRACE)
                self.lost.setdefault(host_id, due)
            else:
                self.lost.pop(host_id, None)

    def follow_pass(self, passed: Passed | None, monotonic_s: float) -> None:
        """Whoever waits may have a better right later, though nothing else happens meanwhile."""
        if passed is None:
            return  # it failed, and is taken again as `pass_failed` says
        if passed.decided.unfinished:
            self.look_again[None] = monotonic_s
        elif passed.somebody_waits:
            self.look_again[None] = monotonic_s + _LOOK_AGAIN_S
        else:
            self.look_again.clear()

    def pass_failed(self, monotonic_s: float) -> None:
        """What fails now may work a little later, though nothing else happens meanwhile."""
        self.look_again[None] = monotonic_s + _LOOK_AGAIN_S

    def follow_reservations(self, books: Books, now: datetime, monotonic_s: float) -> None:
        """When the next window concerns a pass, and when what was announced is taken."""
        now_s = now.timestamp()
        bookings = bookings_of(books.reservations.values())
        ahead = [m for b in bookings for m in moments_of(b) if m > now_s]
        self.windows.clear()
        if ahead:
            self.windows[None] = monotonic_s + min(ahead) - now_s
        due = {key: made.deadline for key, made in books.announced.items()}
        self.announced = {
            key: self.announced.get(key, monotonic_s + (moment - now).total_seconds())
            for key, moment in due.items()
        }

    def link_broke(self, host_id: HostId, monotonic_s: float) -> None:
        """Its host falls silent now, or as soon as that can be written down."""
        self.gone[host_id] = monotonic_s

    def postpone_losses(self, monotonic_s: float) -> None:
        """The manager itself was away: silent hosts get their grace again."""
        grace_until = monotonic_s + self._settings.host_lost_after_s * _GRACE
        self.lost = {host_id: max(due, grace_until) for host_id, due in self.lost.items()}

    def _follow_expiry(
        self, claim_id: ClaimId, books: Books, now: datetime, monotonic_s: float
    ) -> None:
        record = books.claims.get(claim_id)
        if record is None or record.claim.is_over or record.claim.expires_at is None:
            self.expiry.pop(claim_id, None)
            self._ends.pop(claim_id, None)
        elif self._ends.get(claim_id) != record.claim.expires_at:
            self._ends[claim_id] = record.claim.expires_at
            longest_s = self._settings.longest_life.total_seconds()
            left_s = (record.claim.expires_at - now).total_seconds()
            self.expiry[claim_id] = monotonic_s + min(max(0.0, left_s), longest_s)

    def _follow_shrink(self, claim_id: ClaimId, books: Books, monotonic_s: float) -> None:
        record = books.claims.get(claim_id)
        runs = record is not None and record.claim.phase in (Phase.STARTING, Phase.RUNNING)
        leases = list(books.leases_of(claim_id)) if runs else []
        surplus = excess(record.claim, leases) if record is not None and runs else 0
        if surplus <= 0:
            self.shrink.pop(claim_id, None)
            self._excess.pop(claim_id, None)
        elif self._excess.get(claim_id) != surplus:
            # Each worker that is chosen gives the scheduler its time anew for the next one.
            self._excess[claim_id] = surplus
            self.shrink[claim_id] = monotonic_s + self._settings.shrink_within_s
        if any(lease.phase is LeasePhase.RETIRING for lease in leases):
            within_s = self._settings.retire_within_s
            if any(lease.notice is not None for lease in leases):
                # Somebody waits for these devices, and has waited for the grace already.
                within_s = min(within_s, self._settings.shrink_within_s)
            self.retire.setdefault(claim_id, monotonic_s + within_s)
        else:
            self.retire.pop(claim_id, None)

    def _follow_hibernation(self, claim_id: ClaimId, books: Books, monotonic_s: float) -> None:
        record = books.claims.get(claim_id)
        if record is None or record.claim.phase is not Phase.HIBERNATING:
            self.hibernate.pop(claim_id, None)
        else:
            self.hibernate.setdefault(claim_id, monotonic_s + self._settings.retire_within_s)

    def _follow_taken(
        self, claim_id: ClaimId, books: Books, now: datetime, monotonic_s: float
    ) -> None:
        due = [x.notice.deadline for x in books.leases_of(claim_id) if x.counts and x.notice]
        if due:
            left_s = max(0.0, (min(due) - now).total_seconds())
            self.taken.setdefault(claim_id, monotonic_s + left_s)
        else:
            self.taken.pop(claim_id, None)

    def _follow_start(self, claim_id: ClaimId, books: Books, monotonic_s: float) -> None:
        record = books.claims.get(claim_id)
        starts = record is not None and record.claim.phase is Phase.STARTING
        before = self._starting.get(claim_id)
        # Each try to resume has the same number: the scheduler is there, and stays.
        begun = (record.start, record.claim.phase_since) if record is not None and starts else None
        if before == begun:
            return
        if before is not None:
            del self._starting[claim_id]
            self.start.pop((claim_id, before[0]), None)
        if begun is not None:
            self._starting[claim_id] = begun
            self.start[claim_id, begun[0]] = monotonic_s + self._settings.start_within_s

    def _follow_retry(self, claim_id: ClaimId, books: Books) -> None:
        times = books.failures.get(claim_id) or ()
        if len(times) >= MOST_FAILURES:
            self.retry[claim_id] = times[-MOST_FAILURES] + FAILURE_WINDOW_S
        else:
            self.retry.pop(claim_id, None)
