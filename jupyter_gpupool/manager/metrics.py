"""The pool's figures for Prometheus, read from the books when somebody scrapes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.standing import free_devices
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.device import Health
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.lease import LeasePhase

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """A registry of this manager's own."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Books(service))

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._registry)


class _Books(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        books = self._service.books
        live = [r.claim.phase for r in books.claims.values() if r.claim.phase is not Phase.ENDED]
        states = [state.health for host in books.hosts.values() for _, state in host.states]
        free = sum(map(len, free_devices(books).values()))
        yield _by("claims", "Claims that live, by phase.", "phase", live, Phase)
        leases = [lease.phase for lease in books.leases.values()]
        yield _by("leases", "Leases that hold a device, by phase.", "phase", leases, LeasePhase)
        hosts = [host.phase for host in books.hosts.values()]
        yield _by("hosts", "Hosts, by phase.", "phase", hosts, HostPhase)
        yield _by("devices", "Devices, by health.", "health", states, Health)
        yield GaugeMetricFamily("gpupool_devices_free", "Devices that may be leased now.", free)
        yield GaugeMetricFamily("gpupool_event_seq", "Position of the last event.", books.seq)
        yield CounterMetricFamily(
            "gpupool_failed_passes",
            "Scheduling passes that failed for a defect, since the start.",
            self._service.failures.count,
        )
        yield GaugeMetricFamily(
            "gpupool_database_writable", "1 if the last commit worked.", self._service.writable
        )


def _by(
    name: str,
    text: str,
    label: str,
    found: Sequence[StrEnum],
    kinds: type[StrEnum],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"gpupool_{name}", text, labels=[label])
    counts = Counter(found)
    for kind in kinds:
        family.add_metric([kind.value], counts[kind])
    return family
