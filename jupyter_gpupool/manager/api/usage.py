"""Usage: who held how much, what of it was used, and what rules on idle claims won back."""

from functools import partial
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, Query, Response

from jupyter_gpupool.manager.auth.caller import Caller, may_see_usage
from jupyter_gpupool.manager.service.in_force import PolicyInForce
from jupyter_gpupool.manager.service.used_days import DAY_S, UsedDay
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.usage import MOST_DAYS, UsageBy, UsageView

from . import answers
from .parts import TheService, UserCaller
from .problems import responses
from .usage_views import Asking, usage_view

router = APIRouter(prefix="/usage", tags=["pool"])


@router.get("", response_model=UsageView, responses=responses())
async def usage(
    caller: UserCaller,
    service: TheService,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 7,
    by: Annotated[list[UsageBy] | None, Query()] = None,
    zone: Annotated[str, Query(max_length=80)] = "UTC",
) -> Response:
    """Device-hours held, busy, idle and won back: one's own, one's queues' as a lead, or all."""
    asking = Asking(
        days=days,
        by=by or [UsageBy.USER],
        zone=_zone(zone),
        now=service.clock.now(),
        shows=partial(_shows, caller, service.books.policy),
        whole_pool=caller.is_admin,
    )
    since_day = int(asking.since.timestamp() // DAY_S)
    policy_now = service.books.policy
    is_large = caller.is_admin or policy_now.policy.is_lead(caller.user)

    async def report() -> UsageView:
        still = list(service.books.open_records())
        owner = None if is_large else caller.user
        add = partial(usage_view, asking)
        return await service.store.add_up(add, since_day, asking.now, still, owner)

    who = None if caller.is_admin else caller.user
    # By the policy it is decided who leads what.
    asked = (who, policy_now.revision, days, frozenset(asking.by), zone)
    return answers.one(await service.usage_reports.of(asked, report, is_large=is_large))


def _shows(caller: Caller, policy: PolicyInForce, used: UsedDay) -> bool:
    is_known = used.queue in policy.tree.queues
    above = policy.tree.path(used.queue) if is_known else (used.queue,)
    return may_see_usage(caller, used.owner, leads=policy.policy.leads_any(caller.user, above))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(
            f"There is no time zone {name[:80]!r}.",
            field="zone",
            hint='Write for example "Europe/Berlin" or "UTC".',
        ) from error
