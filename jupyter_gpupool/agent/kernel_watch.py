"""Which kernels of this host's claims have ended: seen here, for nobody may be left to say so.

A Jupyter server that is killed takes its kernels along and tells nobody. Called by `host` each few
seconds. A kernel on another host is none of ours, and so unknown.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jupyter_gpupool.protocol.link import GoneKernel, WantedClaim, WantedKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This host, in the words by which kernels name theirs.

    Attributes:
        mark: `host_mark` of it.
        started_at: When the process of a number started, in ticks since boot; None if none runs.
    """

    mark: str
    boot_id: str
    started_at: Callable[[int], int | None]

    def has_lost(self, kernel: WantedKernel) -> bool:
        """Whether a kernel ran here and certainly does no more."""
        if kernel.host != self.mark:
            return False
        if kernel.boot_id != self.boot_id:
            return True
        # Where others' processes are hidden even the first one is, and nobody can be missed.
        return self.started_at(1) is not None and self.started_at(kernel.pid) != kernel.started


def gone_kernels(claims: Iterable[WantedClaim], here: Here) -> tuple[GoneKernel, ...]:
    """Those of these claims' kernels that have ended."""
    return tuple(_gone(claims, here))


def _gone(claims: Iterable[WantedClaim], here: Here) -> Iterator[GoneKernel]:
    for claim in claims:
        for kernel in filter(here.has_lost, claim.kernels):
            yield GoneKernel(
                claim_id=claim.claim_id,
                kernel_id=kernel.kernel_id,
                pid=kernel.pid,
                started=kernel.started,
            )
