"""The kernels of a claim: the Python processes that use it.

Kept with the claim, so that its user finds it again and an idle rule knows whom to ask.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from .errors import Conflict
from .ids import KernelId

MOST_KERNELS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A Python process that uses a claim.

    Attributes:
        name: What people know it by, such as the notebook's path; "" if unknown.
        host, boot_id, pid, started: Which process it is, as `RuntimeFile` says it.
        gone_since: When it was known to have ended without a word; None while it may be there.
    """

    id: KernelId
    name: str
    host: str
    boot_id: str
    pid: int
    started: int
    attached_at: datetime
    gone_since: datetime | None = None

    @property
    def title(self) -> str:
        """What people are told it is called."""
        return self.name or self.id


def attach(kernels: tuple[Kernel, ...], kernel: Kernel) -> tuple[Kernel, ...]:
    """These kernels and this one, in the place of the one of the same id.

    The very same process a second time changes nothing, not even since when it is there.

    Raises:
        Conflict: If there are too many.
    """
    before = next((known for known in kernels if known.id == kernel.id), None)
    if before is not None and replace(kernel, attached_at=before.attached_at) == before:
        return kernels
    others = detach(kernels, kernel.id)
    if len(others) >= MOST_KERNELS:
        raise Conflict(
            f"{len(others)} kernels use this claim already, and no more can.",
            hint="Detach some, or shut down notebooks that no longer need it.",
        )
    return (*others, kernel)


def gone(kernels: tuple[Kernel, ...], kernel_id: KernelId, now: datetime) -> tuple[Kernel, ...]:
    """These kernels, of which the one of this id has ended; a later process of its id has not."""
    return tuple(
        replace(kernel, gone_since=kernel.gone_since or now) if kernel.id == kernel_id else kernel
        for kernel in kernels
    )


def detach(kernels: tuple[Kernel, ...], kernel_id: KernelId) -> tuple[Kernel, ...]:
    """These kernels without the one of this id."""
    return tuple(kernel for kernel in kernels if kernel.id != kernel_id)
