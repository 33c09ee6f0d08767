"""Which processes belong to a worker, however they tried to get away."""

import pytest

from jupyter_gpupool.agent.footprint import HOST_MARK, Footprint, Kinship, Look, belongs
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId

LOG = "/state/logs/c1/worker-l1.log"
MARKS = {"GPUPOOL_CLAIM": "c1", "GPUPOOL_LEASE": "l1"}


@pytest.fixture
def footprint() -> Footprint:
    return Footprint(
        key=ProcessKey("c1", 1, "l1"),
        host_id="host-1",
        leader=ProcessId(100, 100),
        uid=1000,
        log=LOG,
    )


def look(environments=None, outputs=None, users=None) -> Look:
    return Look(
        environment=lambda pid: (environments or {}).get(pid, {}),
        output=lambda pid: (outputs or {}).get(pid, ()),
        user=lambda pid: (users or {}).get(pid, 1000),
    )


def pids(footprint, rows, eyes=None, **more) -> list[int]:
    table = {row.id.pid: row for row in rows}
    return [found.id.pid for found in Kinship(table, eyes or look()).members(footprint, **more)]


def test_its_session_belongs_to_it(footprint, row) -> None:
    """Its threads' subprocesses, whoever their parent is by now."""
    rows = [row(100), row(101, session=100), row(200)]
    assert pids(footprint, rows) == [100, 101]


def test_session_belongs_to_it_after_its_leader_has_gone(footprint, row) -> None:
    """The kernel gives the pid to nobody else while the session lives."""
    assert pids(footprint, [row(101, session=100)]) == [101]


def test_pid_that_came_back_is_somebody_else(footprint, row) -> None:
    """Nor is anything of that session its."""
    assert pids(footprint, [row(100, started=999), row(101, session=100)]) == []


def test_descendants_with_sessions_of_their_own_belong_to_it(footprint, row) -> None:
    """At any depth."""
    rows = [row(100), row(110, parent=100), row(111, parent=110), row(112, parent=111)]
    assert pids(footprint, rows) == [100, 110, 111, 112]


def test_daemon_is_found_by_its_marks(footprint, row) -> None:
    """Reparented, in a session of its own."""
    rows = [row(100), row(300), row(301, parent=300)]
    assert pids(footprint, rows, look({300: MARKS})) == [100, 300, 301]


def test_marks_of_another_lease_are_not_its(footprint, row) -> None:
    """Both have to fit."""
    other = {**MARKS, "GPUPOOL_LEASE": "l2"}
    assert pids(footprint, [row(300)], look({300: other})) == []


def test_marks_of_another_user_are_worth_nothing(footprint, row) -> None:
    """Anyone can put words into their environment."""
    assert pids(footprint, [row(300)], look({300: MARKS}, users={300: 2000})) == []


def test_fork_without_exec_is_found_by_its_log(footprint, row) -> None:
    """It shows the zygote's environment, and writes where its parent did."""
    eyes = look({300: {HOST_MARK: "host-1"}}, {300: {LOG}})
    assert pids(footprint, [row(300)], eyes) == [300]


def test_reader_of_its_log_is_not_its(footprint, row) -> None:
    """An admin's own tail carries no mark of this host."""
    assert pids(footprint, [row(300)], look(outputs={300: {LOG}})) == []


def test_its_control_group_belongs_to_it(footprint, row) -> None:
    """With all that descends from there."""
    rows = [row(300), row(301, parent=300)]
    assert pids(footprint, rows, grouped=frozenset({300, 999})) == [300, 301]


def test_unknown_leader_leaves_the_marks(footprint, row) -> None:
    """As for a record without a pid."""
    unknown = Footprint(
        key=footprint.key, host_id="host-1", leader=None, uid=None, log=footprint.log
    )
    assert pids(unknown, [row(100), row(300)], look({300: MARKS})) == [300]


@pytest.mark.parametrize("pid", [100, 101, 110, 300])
def test_one_process_is_told_alike(footprint, row, pid) -> None:
    """The quick question has the thorough answer."""
    rows = [row(100), row(101, session=100), row(110, parent=100), row(300), row(400)]
    table = {found.id.pid: found for found in rows}
    eyes = look({300: MARKS})
    assert belongs(footprint, pid, table.get, eyes)
    assert not belongs(footprint, 400, table.get, eyes)
