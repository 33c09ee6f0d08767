"""The file by which a user's processes find their embedded pool: its name, and what it says.

Written by the manager, read by clients. Jupyter's runtime folder may be shared between hosts and
outlives a reboot, so the name tells hosts apart, and what it says tells this manager from any
later process of the same number. Pure: who calls it brings the text of /etc/machine-id ("" if
there is none) and what gethostname() says.
"""

from datetime import datetime
from hashlib import sha256
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_SHOWN = 12


def host_mark(machine_id: str, hostname: str) -> str:
    """What tells this host from others that share its folders; shows neither of the two."""
    return sha256((machine_id.strip() + hostname.strip()).encode()).hexdigest()[:_SHOWN]


def runtime_file_name(host: str) -> str:
    """The file's name in the Jupyter runtime folder, from the host's mark."""
    return f"gpupool-{host}.json"


class RuntimeFile(BaseModel):
    """What an embedded manager says of itself once it listens.

    A reader sends nothing to `url` unless host, boot and user are its own and `manager_pid` is a
    process of this user that started at `manager_started`.

    Attributes:
        token: The user's own.
        manager_pid: Its process.
        manager_started: When that process started, in clock ticks since boot: field 22 of
            /proc/PID/stat.
        host: `host_mark` of the host it runs on.
        boot_id: /proc/sys/kernel/random/boot_id, without white space.
        uid: Whose it is.
        started: When it began to listen.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    url: str
    token: str = Field(repr=False)
    manager_pid: Annotated[int, Field(gt=0)]
    manager_started: Annotated[int, Field(ge=0)]
    host: str
    boot_id: str
    uid: Annotated[int, Field(ge=0)]
    started: datetime
