"""Which hosts can run a claim, as far as its Python environment decides that.

Called when a claim is asked for, by each scheduling pass, and by the route that lists environments.
Everything is judged by what the hosts last reported; what is not known speaks against nobody.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from jupyter_gpupool.pool.agreement import Versions, disagreement
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.protocol.link import EnvironmentReport, HostReport
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT

from .books import Books
from .records import ClaimRecord
from .unit import UnitOfWork


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a claim asks of a host's environments.

    Attributes:
        environment: Its name; "" is each host's default.
        interpreter: The kernel's, for the kernel's own environment.
        partners: Versions of those that the environment has to understand.
    """

    environment: str
    interpreter: str
    partners: tuple[tuple[tuple[str, str], ...], ...]


class Barring:
    """Says for claim after claim where it cannot run; the same wish is judged once."""

    def __init__(self, view: Books | UnitOfWork) -> None:
        self._reports = dict(view.reports.items())
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
        # Its workers have to understand the scheduler that is there, and so each other.
        there = () if found is None else (tuple(sorted(found.versions.items())),)
        return Wish(
            environment=wish.environment,
            interpreter=wish.interpreter,
            partners=(*wish.partners, *there),
        )

    def _judge(self, wish: Wish) -> Barred:
        found = {i: a for i, r in self._reports.items() if (a := against(r, wish)) is not None}
        worst = max(found.values(), key=lambda a: a.objection, default=None)
        return Barred(frozenset(found), "" if worst is None else worst.sentence)


def wish_of(request: ClaimRequest) -> Wish:
    """What a request asks of a host."""
    return Wish(
        environment=request.environment,
        interpreter=request.kernel_interpreter,
        partners=(request.kernel_versions,) if request.kernel_versions else (),
    )


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
    wish = wish_of(request)
    reports = [report for report in unit.reports.values() if report.devices]
    found = [against(report, wish) for report in reports]
    objections = [each for each in found if each is not None]
    if objections and len(objections) == len(found):
        worst = max(objections, key=lambda each: each.objection)
        raise _refusal(worst, _others(wish, reports))


def against(report: HostReport, wish: Wish) -> Against | None:
    """What speaks against running on this host, or None."""
    if wish.environment == OWN_ENVIRONMENT:
        return None if report.kernel_environments else _not_allowed(report)
    if report.environments and wish.environment not in ("", *report.environments):
        sentence = f'No host has a Python environment named "{wish.environment}".'
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


def _not_allowed(report: HostReport) -> Against:
    return Against(
        Objection.NOT_ALLOWED,
        f"{report.name} runs no claim in its kernel's own environment.",
        "have an admin set AgentApp.kernel_environments there",
    )


def _disagreement(found: EnvironmentReport, wish: Wish) -> Against | None:
    for partner in wish.partners:
        difference = disagreement(_versions(partner), found.versions)
        if difference is not None:
            sentence = difference.sentence(found.name)
            return Against(Objection.DISAGREES, sentence, difference.remedy)
    return None


def _versions(pairs: Iterable[tuple[str, str]]) -> Versions:
    versions: Mapping[str, str] = dict(pairs)
    return versions


def _others(wish: Wish, reports: list[HostReport]) -> list[str]:
    """Names of environments that would do instead."""
    names = {name for report in reports for name in _offers(report, wish)}
    return sorted(
        name
        for name in names
        if any(against(report, _instead(wish, name)) is None for report in reports)
    )


def _offers(report: HostReport, wish: Wish) -> Iterator[str]:
    yield from report.environments
    if report.kernel_environments and wish.interpreter:
        yield OWN_ENVIRONMENT


def _instead(wish: Wish, name: str) -> Wish:
    return Wish(environment=name, interpreter=wish.interpreter, partners=wish.partners)


def _refusal(against: Against, others: list[str]) -> BadRequest | Conflict:
    names = " or ".join(f'environment="{name}"' for name in others)
    ways = [f"choose {names}"] if names else []
    ways += [against.remedy] if against.remedy else []
    way_out = ", or ".join(ways)
    hint = f"{way_out[:1].upper()}{way_out[1:]}." if way_out else ""
    if against.objection is Objection.UNKNOWN:
        return BadRequest(against.sentence, field="environment", hint=hint)
    return Conflict(against.sentence, hint=hint)
