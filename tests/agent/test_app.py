"""The agent as a program: what it is told, how it ends, and what it says when it cannot go on."""

import asyncio
import signal
import sys
from datetime import timedelta

import pytest
from waiting import eventually

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.app import AgentApp, default_state_folder


def last_line(agent) -> str:
    return agent.log.read_text().strip().splitlines()[-1]


async def test_token_is_sent_and_taken_from_the_environment(agent, manager_end, joined) -> None:
    """No child can inherit what is no longer there."""
    assert manager_end.authorization.startswith("Bearer gpt_")
    [zygote] = agent.zygotes()
    assert "GPUPOOL_TOKEN" not in procfs.environment_of(zygote)
    assert "gpt_" not in agent.log.read_text()


async def test_told_to_exit_it_leaves_its_workers_alone(agent, manager_end, running, see) -> None:
    """As for an upgrade: the next agent adopts them."""
    agent.popen.send_signal(signal.SIGTERM)
    assert await agent.wait() == 0
    assert set(see.pids(running).values()) <= set(procfs.read_rows())


@pytest.mark.parametrize("zygotes", [0, 1], ids=["before its zygote", "at its zygote's birth"])
async def test_told_to_exit_while_it_starts_a_zygote_it_leaves_nothing(
    agent, manager_end, zygotes
) -> None:
    """No process of it is there once it has ended, and the next agent has one zygote."""
    agent.start()
    await asyncio.to_thread(
        eventually, lambda: _listens(agent) and len(agent.zygotes()) >= zygotes, 20
    )
    agent.popen.send_signal(signal.SIGTERM)
    assert await agent.wait() == 0
    assert agent.marked() == []
    agent.start()
    await manager_end.until(
        lambda report: report.agent_pid == agent.pid and report.environment_reports[0].is_warm
    )
    assert len(agent.zygotes()) == 1


def _listens(agent) -> bool:
    """Whether it heeds SIGTERM already: it starts a zygote a moment later."""
    return (agent.state / "agent.sock").exists()


async def test_stop_all_on_exit_leaves_nothing(agent, manager_end, real_claim, see) -> None:
    """Asked to, it takes everything with it, and reports it gone first."""
    agent.start("--stop-all-on-exit")
    await manager_end.until(lambda report: True)
    await manager_end.want(real_claim("c1"))
    await manager_end.until(see.all_run(1, 0))
    agent.popen.send_signal(signal.SIGTERM)
    assert await agent.wait() == 0
    await agent.until_gone()


async def test_orphan_ends_its_claims_and_itself(agent, manager_end, real_claim, see) -> None:
    """A manager that is gone for good must not keep GPUs busy for ever."""
    manager_end.orphan_after_s = 1.0
    agent.start()
    await manager_end.until(lambda report: len(report.devices) == 2)
    await manager_end.want(real_claim("c1"))
    await manager_end.until(see.all_run(1, 0))
    await manager_end.close()
    assert await agent.wait() == 0
    await agent.until_gone()


async def test_environment_that_is_gone_costs_no_claim_its_agent(
    agent, manager_end, real_claim, see, tmp_path
) -> None:
    """At the next start it is told as the environment's problem, for claims run here."""
    gone = tmp_path / "python"
    gone.symlink_to(sys.executable)
    agent.start(f"--AgentApp.environments=gone={gone}")
    await manager_end.until(lambda report: len(report.devices) == 2)
    await manager_end.want(real_claim("c1"))
    await manager_end.until(see.all_run(1, 0))
    agent.kill()
    gone.unlink()
    agent.start(f"--AgentApp.environments=gone={gone}")
    told = await manager_end.until(
        lambda report: any("it is no Python" in e.problem for e in report.environment_reports)
    )
    assert see.all_run(1, 0)(told)


async def test_second_agent_names_the_first(agent, manager_end, joined) -> None:
    """One state folder, one agent."""
    first = agent.popen
    agent.start()
    assert await agent.wait() == 1
    assert f"pid {first.pid}" in last_line(agent)
    first.kill()
    first.wait(10)


async def test_refused_token_is_one_sentence(agent, manager_end) -> None:
    """It says what to do, and does not try for ever."""
    manager_end.token = "another"
    agent.start()
    assert await agent.wait() == 1
    assert "does not accept" in last_line(agent)
    assert "Traceback" not in agent.log.read_text()


async def test_clock_that_is_off_is_a_problem_of_the_host(agent, manager_end) -> None:
    """Everything works on, for nothing of ours hangs on the wall clock."""
    manager_end.clock_off = timedelta(hours=1)
    agent.start()
    report = await manager_end.until(lambda report: bool(report.problem))
    assert "1 h behind" in report.problem or "59 min behind" in report.problem


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--join=",), "No pool to join"),
        (("--join=ftp://somewhere",), "not the address of a manager"),
        (("--join=https://127.0.0.1:1", "--ca-file=/nowhere/ca.pem"), "cannot be read"),
        (("--token-file=/nowhere/token",), "There is no token file at /nowhere/token."),
        (("--token-file=/dev/null",), "is no ordinary file. Name a file"),
        (("--state=/proc/nowhere",), "state folder"),
    ],
)
async def test_wrong_option_is_one_sentence(agent, options, sentence) -> None:
    """It ends, says why, and shows no traceback."""
    agent.start(*options)
    assert await agent.wait() == 1
    assert sentence in last_line(agent)
    assert "Traceback" not in agent.log.read_text()


def test_every_option_says_its_default() -> None:
    """The help of each trait names what holds when it is not set."""
    traits = AgentApp.class_own_traits(config=True)
    silent = [name for name, trait in traits.items() if "Default:" not in trait.help]
    assert silent == ["join_url"]


def test_state_folder_follows_the_desktop_standard(monkeypatch) -> None:
    """Users' state belongs where their system says."""
    monkeypatch.setattr("os.getuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert str(default_state_folder()) == "/somewhere/gpupool/agent"
