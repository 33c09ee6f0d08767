"""What the manager is told of this host, from all that the agent knows. Pure.

Called by `host` for each report.
"""

from dataclasses import dataclass
from datetime import datetime

from jupyter_gpupool import __version__
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.protocol.launch import Role
from jupyter_gpupool.protocol.link import (
    ClaimUse,
    DeviceReport,
    EnvironmentReport,
    GoneKernel,
    HostReport,
)

from .device_watch import DeviceWatch
from .host_facts import HostFacts
from .seen import holder_report, scheduler_report, worker_report
from .states import Known, state_of
from .table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What changes from report to report besides processes and devices."""

    generation: int
    life: str
    uses: tuple[ClaimUse, ...]
    gone_kernels: tuple[GoneKernel, ...]
    at: datetime
    agent_pid: int
    problem: str
    can_start: bool
    environments: tuple[EnvironmentReport, ...]
    kernel_environments: bool


def host_report(
    host_id: HostId, facts: HostFacts, table: Table, devices: DeviceWatch, moment: Moment
) -> HostReport:
    """Everything that is."""
    rows = tuple(table.values())
    return HostReport(
        host_id=host_id,
        name=facts.name,
        address=facts.address,
        agent_pid=moment.agent_pid,
        agent_version=__version__,
        generation=moment.generation,
        at=moment.at,
        cpus=facts.cpus,
        memory_bytes=facts.memory_bytes,
        labels=facts.labels,
        environments=tuple(each.name for each in moment.environments),
        environment_reports=moment.environments,
        kernel_environments=moment.kernel_environments,
        devices=device_reports(table, devices),
        schedulers=tuple(scheduler_report(r) for r in rows if r.key.role is Role.SCHEDULER),
        holders=tuple(holder_report(r) for r in rows if r.key.role is Role.HOLDER),
        workers=tuple(worker_report(r) for r in rows if r.key.role is Role.WORKER),
        problem=moment.problem,
        can_start=moment.can_start,
        life=moment.life,
        uses=moment.uses,
        gone_kernels=moment.gone_kernels,
    )


def device_reports(table: Table, devices: DeviceWatch) -> tuple[DeviceReport, ...]:
    """Every device, what stands against leasing it, and its last sample."""
    known = Known(
        samples=devices.samples,
        foreign=devices.foreign,
        in_use_by={uuid: table.leases_on(uuid) for uuid in devices.known},
        held_elsewhere=devices.held_elsewhere,
        quarantined=devices.quarantined,
        shared=devices.owners.keys(),
    )
    return tuple(
        DeviceReport(
            device=device, state=state_of(device, known), sample=devices.samples.get(device.uuid)
        )
        for device in devices.known.values()
    )
