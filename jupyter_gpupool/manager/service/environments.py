"""Which hosts can run a claim, as far as its Python environment decides that.

Called when a claim is asked for, by each scheduling pass, and by the route that lists environments.
Everything is judged by what the hosts last reported; what is not known speaks against nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jupyter_gpupool.pool.agreement import disagreement
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.protocol.link import EnvironmentReport, HostReport
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT

from .books import Books
from .records import ClaimRecord
from .unit import UnitOfWork

Pairs = tuple[tuple[str, str], ...]
"""Versions by package, as a claim keeps them."""


class Objection(IntEnum):
    """What speaks against a host, from what a user can do least about to what they can do most."""

    UNKNOWN = 0
    NOT_ALLOWED = 1
    BROKEN = 2
    DISAGREES = 3


@dataclass(frozen=True, slots=True)
class Against:
    """Why a claim cannot run on a host."""

    objection: Objection
    sentence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Barred:
    """The hosts on which a claim cannot run, and why not on one of them; "" if there is none."""

    hosts: frozenset[HostId] = frozenset()
    why: str = ""


class Wish(NamedTuple):
    """What a claim asks of a host's environments; a plain tuple, for thousands may wait.

    Attributes:
        environment: Its name; "" is each host's default.
        partners: Versions of those that the environment has to understand.
    """

    environment: str
    partners: tuple[Pairs, ...]


class Barring:
    """Says for claim after claim where it cannot run; what many have in common is judged once."""

    def __init__(self, view: Books | UnitOfWork) -> None:
        self._reports = dict(view.reports.items())
        has_host = any(host.phase is HostPhase.CONNECTED for host in view.hosts.values())
        self._why_none = "" if has_host else view.agent_problem
        self._known: dict[Wish, Barred] = {}

    def of(self, record: ClaimRecord) -> Barred:
        """Where this claim cannot run."""
        wish = self._wish(record)
        if wish not in self._known:
            self._known[wish] = self._judge(wish)
        return self._known[wish]

    def _wish(self, record: ClaimRecord) -> Wish:
        wish, place = wish_of(record.claim.request), record.claim.scheduler
        report = None if place is None else self._reports.get(place.host_id)
        found = None if report is None else environment_of(report, wish.environment)
        if found is None:
            return wish
        # Its workers have to understand the scheduler that is there, and so each other.
        return Wish(wish.environment, (*wish.partners, tuple(found.versions.items())))

    def _judge(self, wish: Wish) -> Barred:
        found = {i: a for i, r in self._reports.items() if (a := against(r, wish)) is not None}
        # What a host without devices lacks is no reason for which workers would not start.
        reasons = [a for i, a in found.items() if self._reports[i].devices]
        worst = max(reasons, key=lambda a: a.objection, default=None)
        return Barred(frozenset(found), self._why_none if worst is None else worst.sentence)


def agent_ended(unit: UnitOfWork, problem: str) -> None:
    """Keep why the manager's own agent has ended, for those who wait for a host."""
    unit.agent_problem = problem
    unit.replan = True


def wish_of(request: ClaimRequest) -> Wish:
    """What a request asks of a host."""
    return Wish(request.environment, (request.kernel_versions,))


def check_environment(unit: UnitOfWork, request: ClaimRequest) -> None:
    """Refuse a claim that no host with devices could run in the environment it names.

    Raises:
        BadRequest: If no host has an environment of that name.
        Conflict: If those that have it cannot be used, or not from this kernel.
    """
    if request.environment == OWN_ENVIRONMENT and not request.kernel_interpreter:
        raise BadRequest(
            "The kernel's own environment is wanted, and its interpreter is not known.",
            field="used_from",
            hint="Say where it is with used_from.interpreter, or name another environment.",
        )
    wish, objections = wish_of(request), list[Against]()
    for report in _with_devices(unit):
        found = against(report, wish)
        if found is None:
            # One is enough, and there may be a thousand.
            return
        objections.append(found)
    if objections:
        worst = max(objections, key=lambda each: each.objection)
        raise _refusal(worst, wish, _others(request, list(_with_devices(unit))))


def against(report: HostReport, wish: Wish) -> Against | None:
    """What speaks against running on this host, or None."""
    if wish.environment == OWN_ENVIRONMENT:
        return None if report.kernel_environments else _not_allowed(report)
    if report.environments and wish.environment not in ("", *report.environments):
        sentence = f'{report.name} has no Python environment named "{wish.environment}".'
        return Against(Objection.UNKNOWN, sentence)
    found = environment_of(report, wish.environment)
    if found is None:
        return None
    if found.problem:
        sentence = f'The environment "{found.name}" of {report.name} cannot be used:'
        return Against(Objection.BROKEN, f"{sentence} {found.problem}.")
    return _disagreement(found, wish)


def environment_of(report: HostReport, name: str) -> EnvironmentReport | None:
    """What a host says of an environment, "" being its default; None if it says nothing."""
    wanted = name or next(iter(report.environments), "")
    return next((each for each in report.environment_reports if each.name == wanted), None)


def _with_devices(unit: UnitOfWork) -> Iterator[HostReport]:
    return (report for report in unit.reports.values() if report.devices)


def _not_allowed(report: HostReport) -> Against:
    return Against(
        Objection.NOT_ALLOWED,
        f"{report.name} runs no claim in its kernel's own environment.",
        "have an admin set AgentApp.kernel_environments there",
    )


def _disagreement(found: EnvironmentReport, wish: Wish) -> Against | None:
    for partner in wish.partners:
        difference = disagreement(dict(partner), found.versions)
        if difference is not None:
            sentence = difference.sentence(found.name)
            return Against(Objection.DISAGREES, sentence, difference.remedy)
    return None


def _others(request: ClaimRequest, reports: list[HostReport]) -> list[str]:
    """Names of environments that would do instead."""
    names = {name for report in reports for name in _offers(report, request)}
    wishes = {name: Wish(name, (request.kernel_versions,)) for name in names}
    return sorted(
        name
        for name, wish in wishes.items()
        if any(against(report, wish) is None for report in reports)
    )


def _offers(report: HostReport, request: ClaimRequest) -> Iterator[str]:
    yield from report.environments
    if report.kernel_environments and request.kernel_interpreter:
        yield OWN_ENVIRONMENT


def _refusal(against: Against, wish: Wish, others: list[str]) -> BadRequest | Conflict:
    names = " or ".join(f'environment="{name}"' for name in others)
    ways = [f"choose {names}"] if names else []
    ways += [against.remedy] if against.remedy else []
    way_out = ", or ".join(ways)
    hint = f"{way_out[:1].upper()}{way_out[1:]}." if way_out else ""
    if against.objection is Objection.UNKNOWN:
        sentence = f'No host has a Python environment named "{wish.environment}".'
        return BadRequest(sentence, field="environment", hint=hint)
    return Conflict(against.sentence, hint=hint)
