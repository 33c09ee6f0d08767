"""Where a device sits: the CPUs and the NUMA node near it, and the paths to the other devices.

Called by `nvml_listing` once for each set of devices: it never changes while the host is up.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvml

from jupyter_gpupool.pool.device import Device, Link, LinkKind
from jupyter_gpupool.pool.ids import DeviceUuid

from .nvml_calls import ask

Handle = Any
Placed = tuple[Device, Handle]
"""A device and the handle of its whole GPU."""

_SWITCH = "switch"
_WORD_BITS = 64
_MOST_NUMA_NODES = 1024
_KINDS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: LinkKind.PCIE_SWITCH,
    pynvml.NVML_TOPOLOGY_SINGLE: LinkKind.PCIE_SWITCH,
    pynvml.NVML_TOPOLOGY_MULTIPLE: LinkKind.PCIE_SWITCH,
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: LinkKind.PCIE_BRIDGE,
    pynvml.NVML_TOPOLOGY_NODE: LinkKind.NUMA,
}


def cpu_affinity(gpu: Handle) -> tuple[int, ...]:
    """The CPUs near a GPU that this process may use; empty where NVML cannot say."""
    cpus = os.sysconf("SC_NPROCESSORS_CONF")
    words = ask(pynvml.nvmlDeviceGetCpuAffinity, gpu, _words(cpus))
    usable = os.sched_getaffinity(0)
    return tuple(cpu for cpu in _bits(words or ()) if cpu in usable)


def numa_node(gpu: Handle) -> int | None:
    """The NUMA node whose memory is near a GPU, or None where there is no such thing."""
    nodes = ask(
        pynvml.nvmlDeviceGetMemoryAffinity,
        gpu,
        _words(_MOST_NUMA_NODES),
        pynvml.NVML_AFFINITY_SCOPE_NODE,
    )
    near = next(_bits(nodes or ()), None)
    if near is not None:
        return near
    from_kernel = _numa_node_of_pci(gpu)
    # Last, for it answers only where the GPU's own memory is a node of the system.
    return from_kernel if from_kernel is not None else ask(pynvml.nvmlDeviceGetNumaNodeId, gpu)


def links_between(placed: Sequence[Placed]) -> Mapping[DeviceUuid, tuple[Link, ...]]:
    """The path from each device to each other one of the host, in their order."""
    nvlinked = _nvlinked(placed)
    return {
        one.uuid: tuple(
            Link(to=other.uuid, kind=_kind((one, gpu), (other, other_gpu), nvlinked))
            for other, other_gpu in placed
            if other.uuid != one.uuid
        )
        for one, gpu in placed
    }


def _kind(one: Placed, other: Placed, nvlinked: frozenset[frozenset[DeviceUuid]]) -> LinkKind:
    if frozenset((one[0].uuid, other[0].uuid)) in nvlinked:
        return LinkKind.NVLINK
    if one[0].parent is not None and one[0].parent == other[0].parent:
        return LinkKind.PCIE_SWITCH
    level = ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, one[1], other[1])
    return LinkKind.SYSTEM if level is None else _KINDS.get(level, LinkKind.SYSTEM)


def _nvlinked(placed: Sequence[Placed]) -> frozenset[frozenset[DeviceUuid]]:
    """Pairs joined by NVLink, directly or through a switch. MIG instances cannot use it."""
    whole = [(device.uuid, gpu) for device, gpu in placed if device.parent is None]
    ends = {uuid: frozenset(_far_ends(gpu)) for uuid, gpu in whole}
    buses = {uuid: _bus(ask(pynvml.nvmlDeviceGetPciInfo, gpu)) for uuid, gpu in whole}
    return frozenset(
        frozenset((one, other))
        for one in ends
        for other in ends
        if one != other and (buses[other] in ends[one] or _SWITCH in ends[one] & ends[other])
    )


def _far_ends(gpu: Handle) -> Iterator[str]:
    """What a GPU's active NVLinks lead to: PCI buses, and `_SWITCH` for any switch."""
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if not ask(pynvml.nvmlDeviceGetNvLinkState, gpu, link):
            continue
        kind = ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, gpu, link)
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield _SWITCH
        else:
            yield _bus(ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, gpu, link))


def _bus(pci: Any) -> str:
    if pci is None:
        return ""
    text = pci.busId
    return (text.decode() if isinstance(text, bytes) else text).lower()


def _numa_node_of_pci(gpu: Handle) -> int | None:
    """What the kernel says; its names have a domain of four digits where NVML's has eight."""
    bus = _bus(ask(pynvml.nvmlDeviceGetPciInfo, gpu))[-12:]
    try:
        node = int(Path(f"/sys/bus/pci/devices/{bus}/numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _words(bits: int) -> int:
    return -(-bits // _WORD_BITS)


def _bits(words: Sequence[int]) -> Iterator[int]:
    for at, word in enumerate(words):
        for bit in range(_WORD_BITS):
            if word >> bit & 1:
                yield at * _WORD_BITS + bit
