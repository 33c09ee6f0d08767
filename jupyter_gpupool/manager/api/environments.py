"""The Python environments that claims can run in."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.environments import environment_of
from jupyter_gpupool.protocol.link import EnvironmentReport, HostReport
from jupyter_gpupool.protocol.using import OWN_ENVIRONMENT, EnvironmentView

from . import answers
from .parts import TheService, UserCaller
from .problems import responses

router = APIRouter(tags=["pool"])


@router.get("/environments", response_model=list[EnvironmentView], responses=responses())
async def environments(caller: UserCaller, service: TheService) -> Response:  # noqa: ARG001 - a right
    """All environments that some host with devices offers, the default first."""
    reports = (report for report in service.books.reports.values() if report.devices)
    return answers.many(environment_views(reports))


def environment_views(reports: Iterable[HostReport]) -> list[EnvironmentView]:
    """What the hosts offer, by name; the kernel's own comes last."""
    offering: Mapping[str, list[HostReport]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: (report.name, report.host_id)):
        for name in report.environments:
            offering[name].append(report)
        if report.kernel_environments:
            offering[OWN_ENVIRONMENT].append(report)
    views = [_view(name, hosts) for name, hosts in offering.items()]
    return sorted(views, key=_place)


def _view(name: str, hosts: list[HostReport]) -> EnvironmentView:
    told = [environment_of(host, name) or EnvironmentReport(name=name) for host in hosts]
    usable = [each for each in told if not each.problem]
    # One that was warm was looked into by itself.
    best = max(usable or told, key=lambda each: (each.is_warm, bool(each.versions)))
    return EnvironmentView(
        name=name,
        hosts=tuple(host.name for host in hosts),
        is_default=any(name == next(iter(host.environments), None) for host in hosts),
        versions=best.versions,
        problem=best.problem,
    )


def _place(view: EnvironmentView) -> tuple[bool, bool, str]:
    return (not view.is_default, view.name == OWN_ENVIRONMENT, view.name)
