"""What hosts saw of claims lately: windows of time in memory, told by agents with their reports.

Filled by the link; read for each claim whose scheduler's host has reported (`idle_watching`). A
window that was taken in stays until what came of it is durable, so a commit that fails loses none.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.signals import LONGEST_WINDOW_MS, WHOLE_USE, Signal
from jupyter_gpupool.protocol.link import ClaimUse, HostReport

_MOST_KEPT = 24
"""Of one claim on one host: what is told after a reconnection, and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One window of a claim on one host.

    Attributes:
        life: Which boot of the host its own times are of.
        begin_s, end_s: The window by the manager's monotonic clock.
    """

    host_id: HostId
    life: str
    begin_s: float
    end_s: float
    use: ClaimUse


class Sightings:
    """The windows that may still count."""

    def __init__(self) -> None:
        self._seen: dict[ClaimId, dict[HostId, list[Sighting]]] = {}

    def hear(
        self, report: HostReport, now_s: float, known_claims: Container[ClaimId] | None = None
    ) -> None:
        """Take in a host's report, which came just now; None is of whatever claim."""
        last_ms = max((use.end_ms for use in report.uses), default=0)
        for use in report.uses:
            is_foreign = known_claims is not None and use.claim_id not in known_claims
            if is_foreign or not _makes_sense(use):
                continue
            known = self._seen.setdefault(use.claim_id, {}).setdefault(report.host_id, [])
            if not _is_known(known, use, report.life):
                known.append(_sighting(report, use, now_s - last_ms / 1000))
                del known[:-_MOST_KEPT]

    def of(self, claim_id: ClaimId, host_id: HostId) -> tuple[Sighting, ...]:
        """A claim's windows on one host, oldest first."""
        return tuple(self._seen.get(claim_id, {}).get(host_id, ()))

    def elsewhere(self, claim_id: ClaimId, host_id: HostId) -> tuple[Sighting, ...]:
        """A claim's windows on all other hosts."""
        others = self._seen.get(claim_id, {}).items()
        return tuple(each for other, seen in others if other != host_id for each in seen)

    def drop_before(self, claim_id: ClaimId, until_s: float) -> None:
        """What ended before is judged for good; the last of each host stays, for it holds on."""
        for seen in self._seen.get(claim_id, {}).values():
            seen[:] = [each for each in seen[:-1] if each.end_s > until_s] + seen[-1:]

    def forget(self, claim_ids: Iterable[ClaimId]) -> None:
        """These claims have ended."""
        for claim_id in claim_ids:
            self._seen.pop(claim_id, None)


def _makes_sense(use: ClaimUse) -> bool:
    """A report must not fail for a window that nothing can be made of: that time is unknown."""
    peak = WHOLE_USE if use.gpu_peak is None else use.gpu_peak
    return (
        0 <= use.end_ms - use.begin_ms <= LONGEST_WINDOW_MS
        and not use.active & use.quiet
        and Signal.GPU not in use.active | use.quiet
        and 0 <= (use.gpu_mean or 0) <= peak <= WHOLE_USE
    )


def _is_known(known: list[Sighting], use: ClaimUse, life: str) -> bool:
    """A first report on a connection says some of what was said before."""
    return bool(known) and known[-1].life == life and use.end_ms <= known[-1].use.end_ms


def _sighting(report: HostReport, use: ClaimUse, zero_s: float) -> Sighting:
    return Sighting(
        host_id=report.host_id,
        life=report.life,
        begin_s=zero_s + use.begin_ms / 1000,
        end_s=zero_s + use.end_ms / 1000,
        use=use,
    )
