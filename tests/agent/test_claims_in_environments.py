"""A real agent whose claims run in other environments than its own."""

import os

import pytest
from other_python import make_environment

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.protocol.link import ProcessPhase

WARM_WITHIN_S = 60.0


@pytest.fixture
def python(tmp_path):
    """The interpreter of an environment without our package."""
    return make_environment(tmp_path / "second")


async def test_claim_runs_in_the_environment_it_names(
    agent, manager_end, real_claim, see, python
) -> None:
    """Its scheduler and its worker are children of that environment's zygote."""
    agent.start(f"--AgentApp.environments=second={python.parent.parent}")
    first = await manager_end.until(lambda report: len(report.devices) == 2)
    assert first.environments == ("default", "second")
    await manager_end.want(real_claim("c1", environment="second"))
    report = await manager_end.until(see.all_run(1, 0), WARM_WITHIN_S)
    assert _zygote_of(report) == str(python)
    assert _told(report, "second").is_warm


async def test_claim_runs_in_its_kernels_own_environment(
    agent, manager_end, real_claim, see, python
) -> None:
    """Nobody has written it down; it is where the claim says."""
    agent.start()
    assert (await manager_end.until(lambda report: True)).kernel_environments
    await manager_end.want(real_claim("c1", environment="kernel", interpreter=str(python)))
    report = await manager_end.until(see.all_run(1, 0), WARM_WITHIN_S)
    assert _zygote_of(report) == str(python)


async def test_unreadable_kernel_fails_the_start_with_its_path(
    agent, manager_end, real_claim, tmp_path
) -> None:
    """At once, for another try would fail as well."""
    python = tmp_path / "python"
    python.touch(mode=0o600)
    agent.start()
    await manager_end.until(lambda report: True)
    await manager_end.want(real_claim("c1", environment="kernel", interpreter=str(python)))
    report = await manager_end.until(_has_failed)
    assert f"{python} cannot be run on this host" in report.schedulers[0].problem


async def test_agent_does_not_start_with_a_path_to_no_python(agent, manager_end) -> None:
    """Its last line says which, and what to write instead."""
    agent.start("--AgentApp.environments=list=/bin/ls")
    assert await agent.wait() == 1
    last = agent.log.read_text().strip().splitlines()[-1]
    assert 'The environment \\"list\\" has no Python at /bin/ls' in last


@pytest.mark.skipif(os.geteuid() != 0, reason="only a root agent has other users' claims")
async def test_root_agent_offers_no_kernels_own_environment_by_itself(agent, manager_end) -> None:
    """It would start interpreters that its admin has not chosen."""
    agent.start("--AgentApp.run_claims_as_agent=False")
    assert not (await manager_end.until(lambda report: True)).kernel_environments


def _zygote_of(report) -> str:
    [scheduler] = report.schedulers
    zygote = procfs.read_row(scheduler.pid).parent
    with open(f"/proc/{zygote}/cmdline", "rb") as file:  # noqa: PTH123 - a process's
        return file.read().split(b"\0")[0].decode()


def _told(report, name):
    return next(each for each in report.environment_reports if each.name == name)


def _has_failed(report) -> bool:
    return any(found.phase is ProcessPhase.FAILED for found in report.schedulers)
