"""Whole processes on stub GPUs: what claims leave on a host is gone before the next one has it."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.devices import StubDevices
from e2e_harness.running_pool import MakePool, RunningPool, strike
from e2e_harness.user import User
from waiting import eventually

MakeStubs = Callable[[int], StubDevices]


@pytest.fixture
def stub_pool(make_pool: MakePool, stubs: MakeStubs) -> Iterator[RunningPool]:
    """A pool on two stub GPUs that checks its promises at the end."""
    pool = make_pool(stubs(2)).start()
    yield pool
    pool.check()
    pool.close()


@pytest.fixture
def user(stub_pool: RunningPool) -> Iterator[User]:
    """A user's script."""
    found = stub_pool.user()
    yield found
    found.end()


def claims_in(pool: RunningPool) -> list[str]:
    """What is left in the agent's state folder of claims."""
    return sorted(path.name for path in (pool.agent_state / "claims").iterdir())


def test_temporary_files_go_with_their_claim(stub_pool: RunningPool, user: User) -> None:
    """Its workers share a folder for them; it is gone with the claim, and so is its name."""
    claim_id = user.ask("claim", gpus=2)
    one, other = user.ask("litter", claim_id=claim_id, kind="plain", workers=2)
    assert one[0] == other[0]
    assert all(Path(file).exists() for _, file in (one, other))
    assert Path(one[0]).resolve() == stub_pool.agent_state.resolve() / "claims" / claim_id / "tmp"
    assert user.ask("litter", claim_id=claim_id, kind="managed", workers=2) == [3, 3]
    stub_pool.end(claim_id)
    eventually(lambda: not claims_in(stub_pool), 10, "its folder is gone")
    assert not os.path.lexists(one[0])


def test_hostile_files_go_and_nothing_else(stub_pool: RunningPool, user: User) -> None:
    """A folder that nobody may write, a file held open; links are not followed."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("litter", claim_id=claim_id, kind="hostile")
    stub_pool.end(claim_id)
    eventually(lambda: not claims_in(stub_pool), 10, "its folder is gone")
    assert Path("/etc/passwd").exists()
    stub_pool.wait_free(2)


def test_agent_that_is_killed_while_it_removes_is_followed_by_one_that_does(
    stub_pool: RunningPool, user: User
) -> None:
    """Nothing stays, and the device is leased again."""
    claim_id = user.ask("claim", gpus=1)
    user.ask("litter", 120, claim_id=claim_id, kind="many")
    stub_pool.api.release(claim_id)
    eventually(
        lambda: any(name.startswith(".gone-") for name in claims_in(stub_pool)),
        20,
        "it is being removed",
    )
    assert stub_pool.agent is not None
    strike(stub_pool.agent, signal.SIGKILL)
    assert claims_in(stub_pool)
    stub_pool.start_agent()
    stub_pool.wait_joined()
    eventually(lambda: not claims_in(stub_pool), 20, "its folder is gone")
    stub_pool.wait_ended(claim_id)
    stub_pool.wait_free(2)


def test_what_cannot_be_removed_quarantines_the_device(stub_pool: RunningPool, user: User) -> None:
    """An admin reads which file it is and why; the device is free when it is gone."""
    claim_id = user.ask("claim", gpus=1)
    [name] = user.ask("litter", claim_id=claim_id, kind="immutable")
    if name is None:
        pytest.skip("no file can be made immutable here")
    device = stub_pool.api.view(claim_id)["leases"][0]["device"]
    stub_pool.api.release(claim_id)
    try:
        found = eventually(
            lambda: [d for d in stub_pool.api.get("/devices") if d["health"] == "quarantined"],
            20,
            "it is quarantined",
            context=stub_pool.tell(claim_id),
        )
        assert [each["uuid"] for each in found] == [device]
        assert f"{Path(name).name} (operation not permitted)" in found[0]["problem"]
        [stuck] = (stub_pool.agent_state / "claims").rglob(Path(name).name)
    finally:
        for path in (stub_pool.agent_state / "claims").rglob(Path(name).name):
            subprocess.run(["chattr", "-i", path], check=True)
    stub_pool.wait_free(2)
    assert stub_pool.wait_ended(claim_id)
    eventually(lambda: not stuck.exists(), 10, "it is removed")
