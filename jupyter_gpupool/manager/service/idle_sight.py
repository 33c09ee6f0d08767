"""What commands know of how claims are used beside the books: in memory alone.

Made by the service for each batch.
"""

from dataclasses import dataclass

from .activity import Activity
from .sightings import Sightings
from .wanting import Wanting


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSight:
    """What hosts and Jupyter servers told, and who waits.

    Attributes:
        since_s: Since when this manager has been told anything, by its monotonic clock.
    """

    sightings: Sightings
    activity: Activity
    wanting: Wanting
    since_s: float
