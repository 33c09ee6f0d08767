"""The policy: what is in force, what was, and how an admin changes it."""

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from jupyter_gpupool.manager.policy_file import at_next_start
from jupyter_gpupool.manager.service.manager_problems import refused_policy
from jupyter_gpupool.manager.service.policy_changes import (
    DEFAULT_SOURCE,
    ChangePolicy,
    change_policy,
)
from jupyter_gpupool.manager.service.policy_check import check_policy
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.protocol.policy_diff import diff
from jupyter_gpupool.protocol.policy_views import (
    LAST_REVISION,
    AppliedView,
    ApplyBody,
    CheckBody,
    CheckView,
    DiffView,
    PolicyView,
    RevisionView,
    RollbackBody,
)

from . import answers
from .parts import ONCE_HEADER, AdminAsks, AdminCaller, Asked, TheService, UserCaller
from .policy_views import check_view, revision_view
from .problems import responses
from .queue_views import Looking, queue_views

router = APIRouter(prefix="/policy", tags=["policy"])

_MOST_LISTED = 1000
_Number = Annotated[int, Path(ge=0, le=LAST_REVISION)]
_Limit = Annotated[int, Query(ge=1, le=_MOST_LISTED)]
_Earlier = Annotated[int | None, Query(ge=0, le=LAST_REVISION)]
_From = Annotated[int | None, Query(alias="from", ge=0, le=LAST_REVISION)]
_To = Annotated[int | None, Query(alias="to", ge=0, le=LAST_REVISION)]


@router.get("", response_model=PolicyView, responses=responses())
async def read_policy(caller: UserCaller, service: TheService) -> Response:
    """The queues as they stand now; the document and its admins' words are for admins alone."""
    standings, books = await service.queue_standings.now(), service.books
    now_s = service.clock.now().timestamp()
    await service.waits.refresh()
    waits = service.waits.last
    queues = queue_views(
        Looking(caller=caller, books=books, standings=standings, waits=waits, now_s=now_s)
    )
    view = PolicyView(revision=books.policy.revision, queues=queues)
    if caller.is_admin:
        applied = await _revision(service, view.revision)
        refused = (f"{each.text} {each.detail}" for each in refused_policy(books.policy))
        warnings = (*refused, *await _warnings_of_file(service, applied.source))
        view = view.model_copy(update={"applied": applied, "warnings": warnings})
    return answers.one(view)


@router.get("/revisions", response_model=list[RevisionView], responses=responses())
async def list_revisions(
    caller: AdminCaller,  # noqa: ARG001 - a right
    service: TheService,
    before: _Earlier = None,
    limit: _Limit = 100,
) -> Response:
    """The revisions without their documents, newest first; only those `before` one, if named."""
    found = await service.store.policies(before=before, limit=limit)
    now = service.books.policy.revision
    return answers.many([revision_view(each, now, with_source=False) for each in found])


@router.get("/revisions/{revision}", response_model=RevisionView, responses=responses(NotFound))
async def read_revision(
    revision: _Number,
    caller: AdminCaller,  # noqa: ARG001 - a right
    service: TheService,
) -> Response:
    """A revision with its document. 0 is how every pool begins."""
    return answers.one(await _revision(service, revision))


@router.get("/diff", response_model=DiffView, responses=responses(NotFound))
async def read_difference(
    caller: AdminCaller,  # noqa: ARG001 - a right
    service: TheService,
    begins: _From = None,
    ends: _To = None,
) -> Response:
    """What differs between two revisions: the one in force and the one before it, unless named."""
    to = service.books.policy.revision if ends is None else ends
    older = max(0, to - 1) if begins is None else begins
    before, after = await _revision(service, older), await _revision(service, to)
    names = (f"revision {older}", f"revision {to}")
    return answers.one(await asyncio.to_thread(diff, before.source, after.source, names=names))


@router.post("/check", response_model=CheckView, responses=responses())
async def check(
    body: CheckBody,
    caller: AdminCaller,  # noqa: ARG001 - a right
    service: TheService,
) -> Response:
    """What would come of applying a document, by line and key; nothing is changed."""
    now, following = service.books.policy.revision, service.books.policy.next_revision
    checked = check_policy(service.books, body.source, service.clock.now().timestamp())
    before, names = (await _revision(service, now)).source, (f"revision {now}", "new")
    differs = await asyncio.to_thread(diff, before, body.source, names=names)
    view = check_view(body.source, checked).model_copy(
        update={"revision": now, "next_revision": following, "diff": differs}
    )
    return answers.one(view)


@router.post(
    "/apply",
    response_model=AppliedView,
    responses=responses(Conflict),
    openapi_extra=ONCE_HEADER,
)
async def apply(body: ApplyBody, asked: AdminAsks) -> Response:
    """Put a document into force as a new revision. One that is refused changes nothing."""
    command = ChangePolicy(
        source=body.source,
        by=asked.caller.user,
        comment=body.comment,
        expected=body.expected_revision,
        key=asked.once,
    )
    return await _changed(asked, command)


@router.post(
    "/rollback",
    response_model=AppliedView,
    responses=responses(NotFound, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def rollback(body: RollbackBody, asked: AdminAsks) -> Response:
    """Put the document of an earlier revision into force again, as a new revision."""
    earlier = await _revision(asked.service, body.revision)
    command = ChangePolicy(
        source=earlier.source,
        by=asked.caller.user,
        comment=body.comment,
        expected=body.expected_revision,
        restores=body.revision,
        key=asked.once,
    )
    return await _changed(asked, command)


async def _changed(asked: Asked, command: ChangePolicy) -> Response:
    done = await asked.service.execute(partial(change_policy, command=command))
    warnings = (*done.effects, *await _warnings_of_file(asked.service, command.source))
    return answers.one(AppliedView(revision=done.revision, is_new=done.is_new, warnings=warnings))


async def _revision(service: Service, number: int) -> RevisionView:
    now = service.books.policy.revision
    if number == 0:
        return RevisionView(revision=0, is_in_force=now == 0, source=DEFAULT_SOURCE)
    found = await service.store.policy(number)
    if found is None:
        raise NotFound(
            f"There is no revision {number} of the policy.",
            hint="See: jupyter gpupool policy history",
        )
    return revision_view(found, now)


async def _warnings_of_file(service: Service, source: str) -> tuple[str, ...]:
    """What the file that the manager was started with will do at the next start."""
    warning = await asyncio.to_thread(at_next_start, service.settings.policy_file, source)
    return (warning,) if warning else ()
