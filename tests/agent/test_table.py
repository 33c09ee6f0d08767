"""The one table of all processes, and what is wanted of it."""

import pytest

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.agent.table import Table
from jupyter_gpupool.agent.wanted import is_news, wanted_of
from jupyter_gpupool.protocol.launch import Hello, Role
from jupyter_gpupool.protocol.link import Desired, WantedWorker


@pytest.fixture
def changes() -> list[int]:
    return []


@pytest.fixture
def table(changes) -> Table:
    return Table(lambda: changes.append(1))


def test_each_change_is_told(table, changes, worker_seen) -> None:
    """What stays as it was is none."""
    table.put(worker_seen())
    table.put(worker_seen())
    table.put(worker_seen(registered=True))
    table.forget(worker_seen().key)
    table.forget(worker_seen().key)
    assert len(changes) == 3


def test_it_may_change_while_it_is_read(table, worker_seen) -> None:
    """A turn reads it and changes it."""
    table.put(worker_seen())
    for key in table:
        table.forget(key)
    assert not table


def test_newest_start_has_the_name(table, scheduler_seen) -> None:
    """A hello does not say of which start it is."""
    old = scheduler_seen(stage=Stage.STOPPING)
    new = scheduler_seen(key=ProcessKey("c1", 2), stage=Stage.FORKING)
    table.put(new)
    table.put(old)
    hello = Hello(role=Role.SCHEDULER, claim_id="c1", lease_id="")
    assert table.named(hello) == new


def test_unknown_name_is_nobody(table, worker_seen) -> None:
    """Nor does a worker pass for a scheduler."""
    table.put(worker_seen())
    assert table.named(Hello(role=Role.WORKER, claim_id="c1", lease_id="l2")) is None
    assert table.named(Hello(role=Role.SCHEDULER, claim_id="c1", lease_id="l1")) is None


def test_wanted_processes_come_scheduler_first(wanted_claim) -> None:
    """One a lease, and the scheduler where it is to be here."""
    claim = wanted_claim("c1", WantedWorker(lease_id="l1", device="D"))
    keys = list(wanted_of(Desired(generation=1, claims=(claim,))).processes)
    assert keys == [ProcessKey("c1", 1), ProcessKey("c1", 1, "l1")]


def test_claim_without_scheduler_here_has_workers_alone(wanted_claim) -> None:
    """Its scheduler is on another host."""
    claim = wanted_claim("c1", WantedWorker(lease_id="l1", device="D"), scheduler=None)
    keys = list(wanted_of(Desired(generation=1, claims=(claim,))).processes)
    assert keys == [ProcessKey("c1", 1, "l1")]


@pytest.mark.parametrize(("generation", "news"), [(1, False), (2, False), (3, True)])
def test_only_a_newer_generation_is_news(generation, news) -> None:
    """A late or repeated message changes nothing."""
    assert is_news(Desired(generation=generation), 2) is news


def test_rows_are_found_by_claim_and_by_device(table, worker_seen, scheduler_seen) -> None:
    """Whatever changed before; what is forgotten is found no more."""
    table.put(scheduler_seen())
    table.put(worker_seen())
    (device,) = worker_seen().devices
    assert {row.key.role for row in table.of_claim("c1")} == {Role.SCHEDULER, Role.WORKER}
    assert table.on_device(device) == (worker_seen(),)
    moved = worker_seen(device="OTHER", stage=Stage.FREEING)
    table.put(moved)
    assert (table.on_device(device), table.on_device("OTHER")) == ((), (moved,))
    table.forget(moved.key)
    assert table.on_device("OTHER") == ()
    assert {row.key.role for row in table.of_claim("c1")} == {Role.SCHEDULER}
    table.forget(scheduler_seen().key)
    assert (table.of_claim("c1"), table.claims()) == ((), frozenset())
