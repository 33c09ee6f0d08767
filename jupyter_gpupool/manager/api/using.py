"""What is said of a claim while it is used: its kernels, a keep, why it is there, its logs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from jupyter_gpupool.manager.auth.caller import require_owner, require_sight
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.environments import Barring
from jupyter_gpupool.manager.service.giving_up import MOST_FAILURES, failures_in_window
from jupyter_gpupool.manager.service.host_shapes import host_shapes
from jupyter_gpupool.manager.service.idle_watching import situation_of, watch_of
from jupyter_gpupool.manager.service.process_logs import fetch_logs, wanted_logs
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.sight import Sight
from jupyter_gpupool.manager.service.using import (
    AttachKernel,
    DetachKernel,
    KeepClaim,
    attach_kernel,
    detach_kernel,
    keep_claim,
    kernels_gone,
    over,
)
from jupyter_gpupool.manager.service.worker_shapes import worker_shape
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import Kept
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.pool.ids import ClaimId, KernelId, UserName
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.bodies import PRINTABLE
from jupyter_gpupool.protocol.link import MOST_LOG_LINES
from jupyter_gpupool.protocol.using import (
    ActivityBody,
    ExplanationView,
    KeepAliveBody,
    KernelBody,
    KernelState,
    LogsView,
)
from jupyter_gpupool.scheduling.idle import deciding
from jupyter_gpupool.scheduling.idle_outlook import outlook_in_words
from jupyter_gpupool.scheduling.prospects import prospects, would_do
from jupyter_gpupool.scheduling.shape import HostShape, WorkerShape

from . import answers
from .claims import as_it_stands, find, foresee, known, start_of
from .explaining import Situation, explain
from .parts import ONCE_HEADER, TheService, UserAsks, UserCaller, UserTells
from .problems import NO_CONTENT, responses

KernelPath = Annotated[str, Path(min_length=1, max_length=200, pattern=PRINTABLE)]

router = APIRouter(tags=["using a claim"])


@router.put(
    "/claims/{claim_id}/kernels/{kernel}",
    response_model=ClaimView,
    responses=responses(NotFound, Conflict),
)
async def attach(
    claim_id: str, kernel: KernelPath, body: KernelBody, caller: UserCaller, service: TheService
) -> Response:
    """A Python process uses the claim from now on. The same one again changes nothing."""
    record = await find(service, ClaimId(claim_id))
    require_owner(caller, record.claim.owner, f"claim {claim_id}")
    if record.claim.id not in service.books.claims:
        raise over(record.claim)
    command = AttachKernel(
        caller=caller, claim_id=record.claim.id, kernel_id=KernelId(kernel), body=body
    )
    await service.execute(partial(attach_kernel, command=command))
    return await as_it_stands(record.claim.id, service, caller)


@router.delete(
    "/claims/{claim_id}/kernels/{kernel}",
    status_code=NO_CONTENT,
    responses=responses(NotFound),
)
async def detach(
    claim_id: str, kernel: KernelPath, caller: UserCaller, service: TheService
) -> Response:
    """A Python process uses the claim no more. One that is not there is not missed."""
    record = await find(service, ClaimId(claim_id))
    require_owner(caller, record.claim.owner, f"claim {claim_id}")
    if record.claim.id in service.books.claims:
        command = DetachKernel(caller=caller, claim_id=record.claim.id, kernel_id=KernelId(kernel))
        await service.execute(partial(detach_kernel, command=command))
    return Response(status_code=NO_CONTENT)


@router.post(
    "/kernels/activity",
    status_code=NO_CONTENT,
    responses=responses(),
)
async def report_activity(body: ActivityBody, caller: UserTells, service: TheService) -> Response:
    """What a Jupyter server saw of the caller's kernels; the last word on each counts."""
    told = {activity.kernel: activity for activity in body.kernels}
    for claim in tuple(service.books.with_kernels(caller.user)):
        service.activity.take(claim.id, claim.kernels, told)
        mine = {k.id: told[k.id].state for k in claim.kernels if k.id in told}
        if dead := {i for i, state in mine.items() if state is KernelState.DEAD}:
            await service.execute(partial(kernels_gone, claim_id=claim.id, ids=dead))
        if claim.warning is not None and KernelState.BUSY in mine.values():
            service.look_at(claim.id)
    return Response(status_code=NO_CONTENT)


@router.post(
    "/claims/{claim_id}/keep_alive",
    response_model=ClaimView,
    responses=responses(NotFound, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def keep_alive(claim_id: str, body: KeepAliveBody, asked: UserAsks) -> Response:
    """Have the claim not taken as idle for so long from now on; 0 takes that back."""
    duration = timedelta(seconds=body.for_s)
    claim = await known(claim_id, asked, Kept(reason="", duration=duration))
    command = KeepClaim(
        caller=asked.caller,
        claim_id=claim.id,
        duration=duration,
        reason=body.reason,
        key=asked.once,
    )
    await asked.service.execute(partial(keep_claim, command=command))
    return await as_it_stands(claim.id, asked.service, asked.caller)


@router.get(
    "/claims/{claim_id}/explanation",
    response_model=ExplanationView,
    responses=responses(NotFound),
)
async def explanation(claim_id: str, caller: UserCaller, service: TheService) -> Response:
    """Why the claim is where it is, in numbers and in sentences."""
    record = await find(service, ClaimId(claim_id))
    require_sight(caller, record.claim.owner, f"claim {claim_id}")
    await service.waits.refresh()
    await foresee([record], service)
    return answers.one(
        explain(_situation(await find(service, record.claim.id), service, caller.user))
    )


@router.get("/claims/{claim_id}/logs", response_model=LogsView, responses=responses(NotFound))
async def logs(
    claim_id: str,
    caller: UserCaller,
    service: TheService,
    process: Annotated[str | None, Query(max_length=200)] = None,
    lines: Annotated[int, Query(ge=1, le=MOST_LOG_LINES)] = 100,
) -> Response:
    """The last lines of the claim's scheduler and workers, or of one of them by its lease's id."""
    claim = (await find(service, ClaimId(claim_id))).claim
    require_owner(caller, claim.owner, f"claim {claim_id}")
    leases = await service.store.leases_of(claim.id)
    wanted = wanted_logs(claim, leases, service.books, process)
    found = await fetch_logs(claim, wanted, lines, service.links, service.books)
    return answers.one(LogsView(claim=claim.id, processes=found))


def _situation(record: ClaimRecord, service: Service, reader: UserName) -> Situation:
    claim, books = record.claim, service.books
    failures = failures_in_window(books, record, service.clock.monotonic())
    shape = worker_shape(books, record, Barring(books).of(record))
    hosts = host_shapes(books, Sight(), None)
    leased = {uuid for lease in books.leases.values() for uuid in lease.devices}
    return Situation(
        claim=claim,
        leases=tuple(books.leases_of(claim.id)),
        wait=service.waits.of(claim.id),
        start=start_of(record, service),
        expected=service.learning.expect_of(record, books, shape),
        prospects=prospects(shape, hosts, leased),
        yours=_held_by(reader, record, shape, hosts, books),
        kernels=service.activity.views(claim.id, claim.kernels),
        idle=_idle(record, service),
        gave_up=failures >= MOST_FAILURES,
        now=service.clock.now(),
    )


def _idle(record: ClaimRecord, service: Service) -> str:
    if record.claim.phase is not Phase.RUNNING or not service.books.policy.policy.idle:
        return ""
    unit = service.preview()
    watch = watch_of(unit, record.claim)
    seen = situation_of(unit, record, watch)
    rule = deciding(seen.rules, seen.subject, unit.now)
    return outlook_in_words(watch, rule, seen.subject)


def _held_by(
    reader: UserName,
    record: ClaimRecord,
    shape: WorkerShape,
    hosts: Iterable[HostShape],
    books: Books,
) -> Mapping[str, int]:
    """How many of the devices that fit are held by the reader's other claims, by their names."""
    fitting = {d.uuid for host in hosts for d in host.devices if would_do(shape, host, d)}
    holders = (
        books.claims[lease.claim_id].claim
        for lease in books.leases.values()
        if fitting.intersection(lease.devices) and lease.claim_id != record.claim.id
    )
    return Counter(claim.name for claim in holders if claim.owner == reader)
