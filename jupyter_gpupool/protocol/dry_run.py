"""What rules on idle claims would have done to claims as they were used: asked and answered.

One route, POST /api/v1/policy/dry-run: DryRunBody → DryRunView, for admins; nothing is changed.
"""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.request import OnIdle

from .bodies import Body, View
from .policy_views import LARGEST_POLICY

MOST_TAKINGS = 1000
"""So many are listed; all are counted."""


class DryRunBody(Body):
    """A document whose rules are tried.

    Attributes:
        days: On what was seen in so many days, as far as the manager has kept it.
    """

    source: Annotated[str, Field(max_length=LARGEST_POLICY)]
    days: Annotated[float, Field(gt=0, le=366)] = 14


class WouldTakeView(View):
    """Something that would have been taken.

    Attributes:
        devices: How many, or how much of one.
        won_gpu_hours: For how long others would have had them: known to be unused.
        was_busy: Its claim was used in the very moment.
        hurts: It was, or was used again within a quarter of an hour.
        reason: Why, by which rule, and what comes of it.
    """

    claim: ClaimId
    owner: UserName
    queue: str
    at: datetime
    rule: str
    ground: Ground
    action: OnIdle
    devices: float
    won_gpu_hours: float
    was_busy: bool
    hurts: bool
    reason: str


class DryRunView(View):
    """What would have come of the rules.

    Attributes:
        claims: How many were looked at.
        left_out: How many more there was no time for: fewer days take less.
        takings: The first `MOST_TAKINGS`, in the order of time.
        taken: How often something would have been taken.
        hurt: How often somebody would have noticed.
        warned: How often users would have been warned.
    """

    days: float
    claims: int
    left_out: int = 0
    taken: int
    hurt: int
    warned: int
    won_gpu_hours: float
    takings: tuple[WouldTakeView, ...] = ()
