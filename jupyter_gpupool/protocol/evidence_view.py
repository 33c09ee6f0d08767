"""What a warning or a taking for idleness rests on, as its reader may see it.

Part of `WarningView` and of `EventView`.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView(Evidence):
    """What a decision rests on.

    Attributes:
        wanted_by: Who was waiting, for admins alone: claims of others are nobody else's business.
        waiting: How many were.
    """

    waiting: int = 0
