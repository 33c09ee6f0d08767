"""Four ways to choose a host for a worker: ours, and the ones it is compared with.

Used by `replay_openb.py`. The others see hosts as columns of numbers and take the host with the
least score of those that have room; within it, the fullest device that fits. Their scores are those
of the simulator behind Weng et al., ATC'23, where the paper compares itself with them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.fragmentation import BayState, HostState
from jupyter_gpupool.scheduling.inventory import Inventory
from jupyter_gpupool.scheduling.shape import HostShape, WorkerShape
from jupyter_gpupool.scheduling.spots import spots_for
from jupyter_gpupool.scheduling.wish import Wish
from jupyter_gpupool.scheduling.workload import workload_of

_LOOK_EVERY = 50
"""Workers after which ours looks anew at what it is to expect."""


class Packer(Protocol):
    """Puts workers on hosts, one after the other."""

    def put(self, shape: WorkerShape) -> bool:
        """Place a worker for good; False if there is no room."""

    def states(self) -> Iterator[HostState]:
        """What is free on each host."""


class Ours:
    """The product's own placement. It expects what it has been asked for so far, nothing else."""

    def __init__(self, hosts: Sequence[HostShape]) -> None:
        self._inventory = Inventory(hosts)
        self._asked: Counter[WorkerShape] = Counter()

    def put(self, shape: WorkerShape) -> bool:
        """As `Packer`."""
        inventory = self._inventory
        self._asked[shape] += 1
        if self._asked.total() % _LOOK_EVERY == 1:
            inventory.expect(workload_of(self._asked.items()))
        wish = Wish(shape, "", inventory.accepting(shape))
        for spot in spots_for(inventory, wish, 1):
            inventory.take(shape, spot)
            return True
        return False

    def states(self) -> Iterator[HostState]:
        """As `Packer`."""
        inventory = self._inventory
        for host, bays in enumerate(inventory.layout.bays_of):
            parts = sorted(left for bay in bays for left in inventory.bays[bay].parts.values())
            whole = sum(inventory.bays[bay].whole.bit_count() for bay in bays)
            bay = BayState(0, whole, tuple(filter(None, parts)))
            yield HostState(inventory.cpu[host], inventory.memory[host], (bay,))


class Columns:
    """Hosts as columns: free cores, memory and devices, each host's devices in a row."""

    def __init__(self, hosts: Sequence[HostShape]) -> None:
        most = max(len(host.devices) for host in hosts)
        self.cpu = np.array([host.cpu for host in hosts], float)
        self.memory = np.array([host.memory_bytes for host in hosts], float)
        self.devices = np.zeros((len(hosts), most))
        for number, host in enumerate(hosts):
            self.devices[number, : len(host.devices)] = WHOLE_DEVICE
        self.largest = np.array([self.cpu.max(), self.memory.max(), most * WHOLE_DEVICE])
        self.free = np.stack([self.cpu, self.memory, self.devices.sum(1)], 1)
        self.whole = (self.devices == WHOLE_DEVICE).sum(1)
        self.roomiest = self.devices.max(1)


Score = Callable[[Columns, "np.ndarray", "np.ndarray"], "np.ndarray"]
"""The score of each of some hosts, the least is best; needs are cores, memory, thousandths."""


class Scored:
    """Placement by a score of each host."""

    def __init__(self, hosts: Sequence[HostShape], score: Score) -> None:
        self._columns = Columns(hosts)
        self._score = score

    def put(self, shape: WorkerShape) -> bool:
        """As `Packer`."""
        columns = self._columns
        need = np.array([shape.cpu, shape.memory_bytes, shape.thousandths], float)
        fits = (columns.free[:, 0] >= need[0]) & (columns.free[:, 1] >= need[1])
        fits &= (columns.whole >= shape.devices) & (columns.roomiest >= shape.share)
        found = np.flatnonzero(fits)
        if not len(found):
            return False
        self._take(int(found[np.argmin(self._score(columns, found, need))]), shape, need)
        return True

    def _take(self, host: int, shape: WorkerShape, need: "np.ndarray") -> None:
        columns, devices = self._columns, self._columns.devices[host]
        columns.free[host] -= need
        if shape.share:
            fitting = np.where(devices >= shape.share, devices, np.inf)
            devices[int(np.argmin(fitting))] -= shape.share
        else:
            devices[np.flatnonzero(devices == WHOLE_DEVICE)[: shape.devices]] = 0
        columns.whole[host] = (devices == WHOLE_DEVICE).sum()
        columns.roomiest[host] = devices.max()

    def states(self) -> Iterator[HostState]:
        """As `Packer`."""
        columns = self._columns
        for free, devices in zip(columns.free, columns.devices, strict=True):
            parts = tuple(sorted(int(left) for left in devices if 0 < left < WHOLE_DEVICE))
            whole = int((devices == WHOLE_DEVICE).sum())
            yield HostState(int(free[0]), int(free[1]), (BayState(0, whole, parts),))


def best_fit(columns: Columns, found: "np.ndarray", need: "np.ndarray") -> "np.ndarray":
    """The least that is left of everything, each measured by the largest host."""
    return ((columns.free[found] - need) / columns.largest).sum(1)


def dot_product(columns: Columns, found: "np.ndarray", need: "np.ndarray") -> "np.ndarray":
    """The least product of what is free and what is needed: as the paper has it."""
    return (columns.free[found] / columns.largest) @ (need / columns.largest)


def alignment(columns: Columns, found: "np.ndarray", need: "np.ndarray") -> "np.ndarray":
    """The largest such product instead: as Tetris has it (Grandl et al., SIGCOMM 2014)."""
    return -dot_product(columns, found, need)


def at_random(seed: int) -> Score:
    """Any host that has room."""
    draws = np.random.default_rng(seed)
    return lambda _, found, __: draws.random(len(found))
