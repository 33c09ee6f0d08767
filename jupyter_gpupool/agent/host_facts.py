"""What the host has and is called: processors, memory, name, the address others reach it at.

Read once by `app`, told to the manager with every report.
"""

import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_DISCARD_PORT = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What does not change while the agent runs.

    Attributes:
        address: Where schedulers and workers of this host listen.
        cpus: That this agent's processes may use.
        memory_bytes: That this agent's processes may use.
    """

    name: str
    address: str
    cpus: int
    memory_bytes: int
    labels: tuple[str, ...] = ()


def usable_cpus() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0))


def usable_memory_bytes() -> int:
    """The machine's memory, or the limit of a container around the agent if that is smaller."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    return min([total, *(limit for path in limits if (limit := _read_number(path)) > 0)])


def address_towards(manager_url: str) -> str:
    """The address of this host on the way to the manager; loopback if the manager is there too."""
    host = urlsplit(manager_url).hostname or "localhost"
    if is_loopback(host):
        return "127.0.0.1"
    family, _, _, _, target = socket.getaddrinfo(host, _DISCARD_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing: it only chooses the way.
        probe.connect(target)
        return str(probe.getsockname()[0])


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this very machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_number(path: str) -> int:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return 0
