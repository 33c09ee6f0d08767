"""The last lines of a claim's processes, from the agents that keep them.

Called by the API. Nobody waits for long: what a host does not answer in time is said so.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jupyter_gpupool.manager.auth.caller import no_such
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.host import DURABLE
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.protocol.using import ProcessLog

from .books import Books
from .links import Links
from .questions import Logs

SCHEDULER = "scheduler"
ANSWER_WITHIN_S = 5.0
_MOST_PROCESSES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A process, and the hosts that may keep its log: one, unless nobody knows any more."""

    process: str
    hosts: tuple[HostId, ...]


def wanted_logs(
    claim: Claim, leases: Sequence[Lease], books: Books, process: str | None
) -> tuple[Wanted, ...]:
    """Where to ask for which logs; without a process, for those that run or else ran last.

    `leases` are all that it ever had, oldest first: without any, it has never started.

    Raises:
        NotFound: If the claim never had this process.
    """
    if process == SCHEDULER:
        return (_scheduler(claim, leases, books),)
    if process is not None:
        found = [lease for lease in leases if lease.id == process]
        if not found:
            raise no_such(f"process {process} of claim {claim.id}")
        return (_worker(found[0]),)
    if not leases:
        return ()
    running = [lease for lease in leases if lease.holds_device] or leases
    return (_scheduler(claim, leases, books), *map(_worker, running[-_MOST_PROCESSES:]))


async def fetch_logs(
    claim: Claim, wanted: Sequence[Wanted], lines: int, links: Links, books: Books
) -> tuple[ProcessLog, ...]:
    """Ask every host at once, and put together what came in time."""
    asked: dict[HostId, list[str]] = defaultdict(list)
    for one in wanted:
        for host_id in one.hosts:
            asked[host_id].append(one.process)
    found = {host_id: links.find(host_id) for host_id in asked}
    answers = {
        host_id: link.ask(claim.id, asked[host_id], lines)
        for host_id, link in found.items()
        if link is not None
    }
    await _await(answers.values())
    heard = {host_id: _logs(answer) for host_id, answer in answers.items()}
    return tuple(_log(one, heard, books) for one in wanted)


async def _await(answers: Collection[asyncio.Future[Logs]]) -> None:
    try:
        if answers:
            await asyncio.wait(answers, timeout=ANSWER_WITHIN_S)
    finally:
        for answer in answers:
            # Takes what is still open off the link's list.
            answer.cancel()


def _logs(answer: asyncio.Future[Logs]) -> Logs | None:
    return None if answer.cancelled() else answer.result()


def _log(one: Wanted, heard: Mapping[HostId, Logs | None], books: Books) -> ProcessLog:
    for host_id in one.hosts:
        for log in heard.get(host_id) or ():
            if log.process == one.process:
                # Where it lies is ours to say, not the agent's.
                return log.model_copy(update={"host": _name(host_id, books)})
    silent = [_name(host_id, books) for host_id in one.hosts if heard.get(host_id) is None]
    names = ", ".join(silent or [_name(host_id, books) for host_id in one.hosts[:1]])
    problem = f"No answer came from {names}." if silent else "No log of it is kept."
    return ProcessLog(process=one.process, host=names, problem=problem)


def _scheduler(claim: Claim, leases: Sequence[Lease], books: Books) -> Wanted:
    if claim.scheduler is not None:
        return Wanted(process=SCHEDULER, hosts=(claim.scheduler.host_id,))
    # Its place is forgotten with its end; it was beside a worker or on a durable host.
    durable = [host.id for host in books.hosts.values() if DURABLE in host.labels]
    last = [lease.host_id for lease in reversed(leases)]
    hosts = tuple(dict.fromkeys([*last, *durable])) if leases else ()
    return Wanted(process=SCHEDULER, hosts=hosts)


def _worker(lease: Lease) -> Wanted:
    return Wanted(process=lease.id, hosts=(lease.host_id,))


def _name(host_id: HostId, books: Books) -> str:
    host = books.hosts.get(host_id)
    return host_id if host is None else host.name
