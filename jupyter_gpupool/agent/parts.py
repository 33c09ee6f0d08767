"""The pieces a host's agent is made of, for those that need several of them."""

from dataclasses import dataclass

from jupyter_gpupool.pool.ids import HostId

from .child_socket import ChildSocket
from .control_groups import ControlGroups
from .device_watch import DeviceWatch
from .devices.lock import DeviceLocks
from .dropping import Dropping
from .environments import Environments
from .footprint import Footprint
from .launching import HostTerms
from .open_files import OpenFiles
from .process_watch import ProcessWatch
from .record_keeping import RecordKeeper
from .records import Records
from .seen import Seen
from .state_folder import StateFolder
from .sweeping import Sweeper
from .table import Table
from .users import Users


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Made once by `host.HostAgent`, handed to what carries out its actions."""

    host_id: HostId
    folder: StateFolder
    terms: HostTerms
    table: Table
    records: Records
    keeper: RecordKeeper
    groups: ControlGroups
    files: OpenFiles
    locks: DeviceLocks
    devices: DeviceWatch
    users: Users
    environments: Environments
    processes: ProcessWatch
    sweeper: Sweeper
    dropping: Dropping
    socket: ChildSocket

    def footprint(self, seen: Seen) -> Footprint:
        """What tells a process's kin from all others."""
        return footprint_of(seen, self.host_id, self.folder, self.groups)


def footprint_of(
    seen: Seen, host_id: HostId, folder: StateFolder, groups: ControlGroups
) -> Footprint:
    """As `Parts.footprint`, for those that have no `Parts`."""
    return Footprint(
        key=seen.key,
        host_id=host_id,
        leader=seen.process,
        uid=seen.uid,
        log=str(folder.log(seen.key)),
        group=groups.folder(seen.key),
    )
