"""Rules tried on claims as they were used: in a thread, for weeks of many claims take a while."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import groupby

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.records import RecordedUse
from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.protocol.dry_run import MOST_TAKINGS, DryRunBody, DryRunView, WouldTakeView
from jupyter_gpupool.protocol.policy import parse_policy
from jupyter_gpupool.scheduling.idle_dry_run import DryRun, Recorded, WouldTake, dry_run
from jupyter_gpupool.scheduling.idle_wording import in_words

from . import answers
from .parts import AdminCaller, TheService
from .problems import responses

_WITHIN_S = 15.0
History = tuple[ClaimId, list[Recorded]]

router = APIRouter(prefix="/policy", tags=["policy"])


@router.post("/dry-run", response_model=DryRunView, responses=responses())
async def try_rules(
    body: DryRunBody,
    caller: AdminCaller,  # noqa: ARG001 - a right
    service: TheService,
) -> Response:
    """What a document's rules on idle claims would have done lately; nothing is changed."""
    rules = parse_policy(body.source).idle
    # What is still being recorded comes after all that is written down of the same claim.
    still = list(service.books.open_records())
    seen = await service.store.recorded(service.clock.now() - timedelta(days=body.days))
    histories = _by_claim([*seen, *still])
    async with service.trying:
        until_s = service.clock.monotonic() + _WITHIN_S
        played = await asyncio.to_thread(_play, histories, rules, until_s, service.clock.monotonic)
    view = _view(body.days, played)
    return answers.one(view.model_copy(update={"left_out": len(histories) - len(played)}))


def _play(
    histories: Sequence[History],
    rules: Sequence[IdleRule],
    until_s: float,
    monotonic: Callable[[], float],
) -> Sequence[DryRun]:
    """Claim by claim, as many as there is time for: whoever asked does not wait for ever."""
    played: list[DryRun] = []
    for history in histories:
        if played and monotonic() > until_s:
            break
        played.append(dry_run([history], rules))
    return played


def _by_claim(seen: Iterable[RecordedUse]) -> Sequence[History]:
    in_order = sorted(seen, key=lambda use: use.claim_id)
    grouped = groupby(in_order, key=lambda use: use.claim_id)
    return [(claim_id, [use.recorded for use in uses]) for claim_id, uses in grouped]


def _view(days: float, played: Sequence[DryRun]) -> DryRunView:
    takings = (taking for each in played for taking in each.takings)
    in_order = sorted(takings, key=lambda taking: taking.evidence.until)
    return DryRunView(
        days=days,
        claims=len(played),
        taken=len(in_order),
        hurt=sum(len(each.hurt) for each in played),
        warned=sum(count for each in played for _, count in each.warned),
        won_gpu_hours=sum(each.won_device_s for each in played) / 3600,
        takings=tuple(map(_taking, in_order[:MOST_TAKINGS])),
    )


def _taking(taking: WouldTake) -> WouldTakeView:
    evidence, subject = taking.evidence, taking.subject
    return WouldTakeView(
        claim=taking.claim_id,
        owner=subject.user,
        queue=subject.queues[0] if subject.queues else "",
        at=evidence.until,
        rule=evidence.rule,
        ground=evidence.ground,
        action=evidence.action,
        devices=taking.devices / 1000,
        won_gpu_hours=taking.won_device_s / 3600,
        was_busy=taking.was_busy,
        hurts=taking.hurts,
        reason=in_words(evidence),
    )
