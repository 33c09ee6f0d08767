"""A disk that is full, read-only or wrong: one clear sentence, and nothing acknowledged is lost."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.devices import SimulatedDevices
from e2e_harness.launching import free_port
from e2e_harness.processes import Process
from e2e_harness.running_pool import MakePool, RunningPool, strike
from waiting import eventually

GIB = 2**30


@pytest.fixture
def small(make_pool: MakePool) -> RunningPool:
    """A pool of two simulated devices of this scenario's own, not yet started."""
    return make_pool(SimulatedDevices(2))


@pytest.fixture
def small_disk(small: RunningPool, as_root: None) -> Iterator[Callable[[Path], Path]]:
    """Mount 8 MiB under a folder of the pool."""
    mounted: list[Path] = []

    def mount(folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no mounts here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    small.close()
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 1024, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def test_managers_full_disk_refuses_and_loses_nothing(
    small: RunningPool, small_disk: Callable[[Path], Path]
) -> None:
    """While it is full nothing is acknowledged; then all that was is still there."""
    small_disk(small.manager_state)
    small.start()
    before = small.api.claim(1)
    small.wait_phase(before, "running")
    filler = _fill(small.manager_state)
    answers = [small.api.try_post("/claims", {"workers": {"min": 1, "max": 1}}) for _ in range(40)]
    refused = [answer for answer in answers if not answer.is_success]
    assert refused, "a full disk takes no more claims"
    assert {answer.status_code for answer in refused} == {503}
    assert "space" in refused[-1].json()["detail"] or "disk" in refused[-1].json()["detail"]
    filler.unlink()
    taken = [str(a.json()["id"]) for a in answers if a.is_success] + [small.api.claim(1)]
    assert small.manager is not None
    strike(small.manager, signal.SIGKILL)
    small.start_manager()
    assert all(small.api.try_get(f"/claims/{c}").is_success for c in [before, *taken])
    assert small.api.phase(before) == "running"


def test_agents_full_disk_is_a_problem_of_its_host(
    small: RunningPool, small_disk: Callable[[Path], Path]
) -> None:
    """What runs goes on; the host says what is wrong; when there is space again it works again."""
    small_disk(small.agent_state)
    small.start()
    first = small.api.claim(1)
    small.wait_phase(first, "running")
    filler = _fill(small.agent_state)
    second = small.api.claim(1)
    problem = eventually(lambda: _told(small, second), 15, "it is said")
    assert "space" in problem or "disk" in problem
    assert small.api.phase(first) == "running"
    filler.unlink()
    third = second if small.api.phase(second) != "ended" else small.api.claim(1)
    small.wait_phase(third, "running")
    small.end(first)
    small.end(third)


def _told(pool: RunningPool, claim_id: str) -> str:
    said = [host["problem"] for host in pool.api.get("/hosts")]
    said += list(pool.api.reasons(claim_id))
    return next((text for text in said if "space" in text or "disk" in text), "")


@pytest.mark.parametrize("which", ["manager", "agent"])
def test_read_only_state_folder_is_one_sentence(
    small: RunningPool, small_disk: Callable[[Path], Path], which: str
) -> None:
    """It names the folder and what to do, and the process ends."""
    folder = small_disk(small.manager_state if which == "manager" else small.agent_state)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    if which == "agent":
        small.start_manager()
        assert "read-only" in _last_words(small, small.spawn_agent(), "agent").lower()
    else:
        assert "read-only" in _last_words(small, small.spawn_manager(), "manager").lower()


def test_corrupt_database_is_one_sentence_and_is_kept(small: RunningPool) -> None:
    """The manager does not start, says which file, and does not touch it."""
    small.start_manager()
    assert small.manager is not None
    strike(small.manager, signal.SIGKILL)
    database = _database(small)
    for extra in small.manager_state.glob(f"{database.name}-*"):
        extra.unlink()
    database.write_bytes(b"not a database " * 1000)
    words = _last_words(small, small.spawn_manager(), "manager")
    assert database.name in words
    assert database.read_bytes().startswith(b"not a database")


def _database(pool: RunningPool) -> Path:
    return max(pool.manager_state.glob("*.sqlite*"), key=lambda path: -len(path.name))


def test_damaged_record_loses_no_process(small: RunningPool) -> None:
    """A new agent finds what runs in spite of it, says so, and ends it with its claim."""
    small.start()
    claim_id = small.api.claim(1)
    small.wait_phase(claim_id, "running")
    assert small.agent is not None
    worker = small.worker_of(claim_id)
    strike(small.agent, signal.SIGKILL)
    for path in (small.agent_state / "running").glob("*.json"):
        path.write_text('{"half a rec')
    small.start_agent()
    eventually(lambda: _damage(small), 10, "the damage is said")
    small.wait_workers(claim_id, 1)
    assert worker.lives, "it was adopted, not started again"
    small.end(claim_id)
    assert not worker.lives


def _damage(pool: RunningPool) -> bool:
    return any("damaged" in host["problem"] for host in pool.api.get("/hosts"))


def test_second_manager_and_second_agent_name_the_first(small: RunningPool) -> None:
    """A state folder has one owner; the other one ends with a sentence."""
    small.start()
    assert small.manager is not None
    assert small.agent is not None
    words = _last_words(small, small.spawn_manager(port=free_port()), "manager")
    assert str(small.manager.pid) in words
    words = _last_words(small, small.spawn_agent(), "agent")
    assert str(small.agent.pid) in words


def test_port_in_use_is_one_sentence(small: RunningPool, make_pool: MakePool) -> None:
    """It names the port."""
    small.start_manager()
    other = make_pool(SimulatedDevices(1))
    words = _last_words(other, other.spawn_manager(port=small.port), "manager")
    assert str(small.port) in words


def _last_words(pool: RunningPool, ended: Process, name: str) -> str:
    """The last line of a process that must end by itself, and that without a traceback."""
    assert ended.wait_gone(15), "it goes on"
    text = (pool.folder / "logs" / f"{name}.log").read_text()
    assert "Traceback" not in text, text
    return text.strip().splitlines()[-1]
