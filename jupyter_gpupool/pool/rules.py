"""What the policy says of scheduling: the numbers and choices that every pass heeds.

Part of the policy; read by `scheduling`, the simulator and the manager.
"""

from dataclasses import dataclass
from enum import StrEnum


class SurplusOrder(StrEnum):
    """Who gets what is left when every guarantee is met."""

    FAIR_SHARE = "fair_share"
    LEAST_ATTAINED_SERVICE = "least_attained_service"


class Moves(StrEnum):
    """What becomes of a gang that fits in total but not on hosts."""

    PROPOSED = "proposed"
    """It is told how many claims would have to move; nobody does."""
    DONE = "done"
    """They are moved."""


class Sharing(StrEnum):
    """Who may hold parts of one device together."""

    SAME_USER = "same_user"
    SAME_QUEUE = "same_queue"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the policy says of scheduling.

    Attributes:
        half_life_s: After which time usage counts half.
        usage_weight: k of the correction by usage; 0 switches it off.
        surplus_order: Who gets the surplus.
        levels: Device-seconds at which attained service steps to the next level, ascending.
        least_stint_s: For how long a claim past the first level keeps its devices once it has
            them, whoever has attained less: what bounds the cost of hibernating it.
        sharing: Who may hold parts of one device together.
        may_move: Whether claims may be hibernated and resumed elsewhere so that a gang fits.
        tells_moves: Whether a gang that nobody may move for is told how many would have to.
        most_moved: Places from which claims are moved for one gang at most: whole claims, and
            single workers of those that have more than they need.
        most_searches: For so many claims a pass makes room at most; more make it slower, fewer
            let a changed pool settle in more passes.
        blocked_for_s: A claim blocked so long holds a reservation.
        hibernate_cost_s: What one hibernate-and-resume costs a claim.
    """

    half_life_s: float = 86_400.0
    usage_weight: float = 0.5
    surplus_order: SurplusOrder = SurplusOrder.FAIR_SHARE
    levels: tuple[float, ...] = (3_600.0, 36_000.0, 360_000.0, 3_600_000.0)
    least_stint_s: float = 600.0
    sharing: Sharing = Sharing.SAME_USER
    may_move: bool = False
    tells_moves: bool = False
    most_moved: int = 16
    most_searches: int = 64
    blocked_for_s: float = 600.0
    hibernate_cost_s: float = 60.0
