"""Is the port free on which a manager listens unless told otherwise?"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.manager_process import Health, health_of

from .finding import Finding, note, warning, well
from .sight import Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """Who has a port.

    Attributes:
        holder: The process, as people know it; "" if that cannot be seen.
        is_manager: A pool's manager answers there.
    """

    port: int
    is_taken: bool = False
    holder: str = ""
    is_manager: bool = False


def check_port(_sight: Sight) -> Iterator[Finding]:
    """Look at the manager's usual port."""
    from jupyter_gpupool.manager.app import ManagerApp  # noqa: PLC0415 - a service

    yield judge_port(look_at_port(ManagerApp.port.default_value))


def judge_port(facts: PortFacts) -> Finding:
    """A private pool takes any port; only a manager of one's own wants this one."""
    if not facts.is_taken:
        return well("port", f"Port {facts.port} is free for a manager.")
    if facts.is_manager:
        return note(
            "port-managers",
            f"A pool's manager listens on port {facts.port} of this machine.",
            f"Nothing; to use that pool: GPUPOOL_URL=http://127.0.0.1:{facts.port}",
        )
    return warning(
        "port-taken",
        f"Port {facts.port}, the manager's, is taken by {facts.holder or 'another process'}.",
        "Start the manager with another --port, or end that process; private pools need neither.",
    )


def look_at_port(port: int) -> PortFacts:
    """Try to have the port, for a moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the manager does: what only lingers from an earlier one is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            pass
        else:
            return PortFacts(port=port)
    address = PoolAddress(url=f"http://127.0.0.1:{port}", token="none")  # noqa: S106 - never sent
    is_manager = health_of(address) is Health.WELL
    return PortFacts(port=port, is_taken=True, is_manager=is_manager, holder=_holder(port))


def _holder(port: int) -> str:
    try:
        import psutil  # type: ignore[import-untyped] # noqa: PLC0415 - only where hosts are
    except ModuleNotFoundError:
        return ""
    try:
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid:
                process = psutil.Process(each.pid)
                return f"process {each.pid} ({process.name()} of {process.username()})"
    except psutil.Error:
        # Another user's, or gone in between.
        return ""
    return ""
