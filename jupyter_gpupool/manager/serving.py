"""The manager as a running process: opens everything in order, and closes it in reverse.

Called by `app.py` with plain values; knows nothing of configuration files.
"""

import asyncio
import contextlib
import gc
import getpass
import logging
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .api.application import make_application
from .api.parts import Parts
from .auth.sessions import Sessions
from .auth.tokens import TokenAuthenticator
from .clock import Clock
from .head_start import AGENT_TOKEN, HeadStart, agent_command
from .http_server import HttpServer
from .joining import BESIDE_STATE
from .local_agent import LocalAgent
from .metrics import Metrics
from .open_files import Limit, raise_limit
from .own_tokens import ensure_token
from .owner import watched
from .runtime_file import remove_runtime_file, write_runtime_file
from .service.claims import end_everything
from .service.environments import agent_ended
from .service.policy import ApplyPolicy, apply_policy
from .service.service import Service
from .service.timer import Timer
from .state_folder import StateFolder
from .store.sealing import load_seal
from .store.store import Store
from .to_serve import Embedded, Serving

_LOG = logging.getLogger(__name__)
_CLEAN_WITHIN_S = 20.0
_CLOSE_WITHIN_S = 2.0


async def serve(serving: Serving, head_start: HeadStart | None = None) -> None:
    """Run until a signal, or until idle for long enough.

    Args:
        serving: What to serve.
        head_start: What has been begun already for an embedded manager.

    Raises:
        PoolError: If it cannot start, in one sentence.
    """
    files = raise_limit()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        if head_start is None:
            folder = StateFolder(serving.state)
            server = HttpServer.bind(serving.ip, serving.port, serving.tls)
        else:
            folder = head_start.folder
            server = HttpServer(head_start.listening, serving.tls)
        stack.callback(folder.release)
        stack.callback(server.close)
        parts, timer = await stack.enter_async_context(_running_parts(serving, folder))
        # Before anybody is answered: whoever sees the manager well may read the token, and an
        # agent that has begun already shows its own.
        if serving.embedded is None or head_start is None:
            await _ensure_admin(parts, folder.path / "admin-token")
        else:
            await _ensure_agent(parts, head_start)
        await server.start(make_application(parts))
        stack.push_async_callback(_hang_up, parts, server)
        if serving.embedded is not None and head_start is not None:
            local = _embedded(
                serving, serving.embedded, parts, server, files=files, head_start=head_start
            )
            await stack.enter_async_context(local)
            if serving.embedded.ends_with is not None:
                stack.enter_context(watched(serving.embedded.ends_with, stop.set))
        _LOG.info("Listening on %s", server.url)
        _tame_collector()
        await _until_end(stop, serving, parts, {"timer": timer.failed(), "HTTP": server.ended()})


async def _ensure_agent(parts: Parts, head_start: HeadStart) -> str:
    agent, given = UserName("agent"), head_start.agent_token
    path = head_start.folder.path / AGENT_TOKEN
    return await ensure_token(parts, path, agent, Role.AGENT, given=given)


async def _ensure_admin(parts: Parts, path: Path) -> None:
    # Named after the service, not after a person: an account `admin` of the hosts, which often may
    # become root, must not be theirs by its name alone.
    admin, os_user = UserName("admin"), _user_name()
    await ensure_token(parts, path, admin, Role.ADMIN, os_user=os_user)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a container's user without an account


def _tame_collector() -> None:
    # Thousands of waiting claims are garbage to nobody; searching them all for cycles would stop
    # every request for a tenth of a second, so that is left to the timer's quiet hour.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 100_000)


@asynccontextmanager
async def _running_parts(
    serving: Serving, folder: StateFolder
) -> AsyncIterator[tuple[Parts, Timer]]:
    seal = load_seal(folder.path / "secret-key")
    store = Store(serving.database_url or folder.database_url, seal)
    clock = Clock()
    service = Service(store, serving.settings, clock)
    try:
        await service.start()
        await _apply_policy(service)
        timer = Timer(service)
        timer.start()
        authenticator = TokenAuthenticator(service.books, clock)
        parts = Parts(
            service=service,
            authenticator=authenticator,
            sessions=Sessions(clock, authenticator),
            seal=seal,
            metrics=Metrics(service),
            asked_s=clock.monotonic(),
        )
        yield parts, timer
        await timer.close()
    finally:
        await service.close()
        store.close()


async def _apply_policy(service: Service) -> None:
    settings, refused = service.settings, service.books.policy.refused
    # A file that says what this version refuses anyway has not been mended yet.
    if settings.policy_source and (refused is None or settings.policy_source != refused.source):
        comment = f"At its start, from {settings.policy_file}." if settings.policy_file else ""
        command = ApplyPolicy(
            source=settings.policy_source, by=UserName("manager"), comment=comment
        )
        await service.execute(partial(apply_policy, command=command))
    for problem in service.problems():
        _LOG.error("%s %s", problem.text, problem.detail)


@asynccontextmanager
async def _embedded(
    serving: Serving,
    embedded: Embedded,
    parts: Parts,
    server: HttpServer,
    *,
    files: Limit,
    head_start: HeadStart,
) -> AsyncIterator[None]:
    user = UserName(_user_name())
    user_token = await ensure_token(parts, serving.state / "user-token", user, Role.ADMIN)
    command = agent_command(serving, embedded, server.url)
    token = await _ensure_agent(parts, head_start)
    now = parts.service.clock.now()
    # Before the agent is taken: what fails here leaves it to the head start, which ends it.
    for file in _runtime_files(serving, embedded):
        write_runtime_file(file, url=server.url, token=user_token, started=now)
    tell = partial(_tell_of_agent, parts.service)
    agent = LocalAgent(command, token, files, tell=tell, first=head_start.take_agent())
    agent.start(replace=head_start.moved)
    try:
        yield
    finally:
        for file in _runtime_files(serving, embedded):
            remove_runtime_file(file)
        if embedded.stop_all_on_exit:
            await _end_all_claims(parts.service)
        if embedded.stop_all_on_exit or not _live(parts.service):
            await agent.stop()


def _runtime_files(serving: Serving, embedded: Embedded) -> tuple[Path, Path]:
    """Where clients look; and where a manager looks that finds this one in its place."""
    return embedded.runtime_file, serving.state / BESIDE_STATE


async def _tell_of_agent(service: Service, problem: str) -> None:
    # It is told for whoever waits: a manager that ends, or cannot write, has more to tell.
    with contextlib.suppress(PoolError):
        await service.execute(partial(agent_ended, problem=problem))


async def _until_end(
    stop: asyncio.Event,
    serving: Serving,
    parts: Parts,
    others: Mapping[str, Coroutine[Any, Any, None]],
) -> None:
    parts_of_us = {"writer": parts.service.failed(), **others}
    watched = {name: asyncio.ensure_future(ends) for name, ends in parts_of_us.items()}
    allowed: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
    if serving.idle_exit_after_s is not None:
        allowed.append(asyncio.ensure_future(_until_idle(parts, serving.idle_exit_after_s)))
    every = {*allowed, *watched.values()}
    await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
    broken = [name for name, task in watched.items() if task.done()]
    for task in every:
        task.cancel()
    if broken:
        raise Unavailable(
            f"The manager's {broken[0]} part has stopped; nothing acknowledged is lost.",
            hint="Start the manager again; its log tells more.",
        )


async def _until_idle(parts: Parts, after_s: float) -> None:
    monotonic = parts.service.clock.monotonic
    while True:
        if _live(parts.service) or parts.service.hub.listeners:
            parts.asked_s = monotonic()
        left_s = parts.asked_s + after_s - monotonic()
        if left_s <= 0:
            _LOG.info("Nobody asked for %.0f s and no claim lives; ending", after_s)
            return
        await asyncio.sleep(left_s)


def _live(service: Service) -> bool:
    return any(r.claim.phase is not Phase.ENDED for r in service.books.claims.values())


async def _end_all_claims(service: Service) -> None:
    try:
        await service.execute(partial(end_everything, reason="The pool was stopped."))
        async with asyncio.timeout(_CLEAN_WITHIN_S):
            while _live(service):
                await service.next_batch()
    except (TimeoutError, PoolError) as error:
        _LOG.warning("Not everything could be ended in time: %s", error or "hosts did not answer")


async def _hang_up(parts: Parts, server: HttpServer) -> None:
    parts.is_ending = True
    parts.service.links.close_all()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await parts.sessions.close_all()
    await server.stop()
