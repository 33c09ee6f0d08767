"""Which hosts are asked for which logs, and what is made of their answers."""

import asyncio
from dataclasses import replace

import pytest

from jupyter_gpupool.manager.service import process_logs
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.links import Link, Links
from jupyter_gpupool.manager.service.process_logs import Wanted, fetch_logs, wanted_logs
from jupyter_gpupool.pool.claim import SchedulerPlace
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.protocol.link import LogAnswer
from jupyter_gpupool.protocol.using import ProcessLog

SCHEDULER = Wanted(process="scheduler", hosts=("a",))


@pytest.fixture
async def two_hosts(pool):
    """A claim with a worker on each of two hosts; its scheduler is on a third, durable one."""
    agents = [await pool.joined("a", 1), await pool.joined("b", 1)]
    agents.append(await pool.joined("d", 0, durable=True))
    claim = await pool.claim(2)
    await pool.come_up(*agents)
    return pool.now(claim), sorted(pool.leases(claim), key=lambda lease: lease.host_id)


@pytest.fixture
def host():
    """Connects a host whose agent answers with these logs, or not at all."""
    links = Links()

    def connect(name, logs=None):
        link = Link(host_id=name, peer=(name, ""))
        links.open(link, 0.0)
        if logs is not None:
            asyncio.get_running_loop().call_soon(_answer, link, logs)
        return links

    return connect


async def test_running_claim_is_asked_for_where_it_runs(pool, two_hosts):
    """Scheduler first, each process on its own host."""
    claim, leases = two_hosts
    assert wanted_logs(claim, leases, pool.service.books, None) == (
        Wanted(process="scheduler", hosts=("d",)),
        Wanted(process=leases[0].id, hosts=("a",)),
        Wanted(process=leases[1].id, hosts=("b",)),
    )


async def test_workers_that_ended_are_left_out_while_others_run(pool, two_hosts):
    """Unless somebody asks for one by its name."""
    claim, [first, second] = two_hosts
    gone = replace(first, phase=LeasePhase.ENDED)
    everything = wanted_logs(claim, [gone, second], pool.service.books, None)
    assert [one.process for one in everything] == ["scheduler", second.id]
    [named] = wanted_logs(claim, [gone, second], pool.service.books, gone.id)
    assert named == Wanted(process=gone.id, hosts=("a",))


async def test_ended_claim_is_asked_for_where_it_ran_last(pool, two_hosts):
    """Where its scheduler was nobody knows any more: beside a worker, or on a durable host."""
    claim, leases = two_hosts
    ended = replace(claim, scheduler=None)
    gone = [replace(lease, phase=LeasePhase.ENDED) for lease in leases]
    scheduler, *workers = wanted_logs(ended, gone, pool.service.books, None)
    assert scheduler.hosts == ("b", "a", "d")
    assert [worker.process for worker in workers] == [lease.id for lease in leases]


async def test_claim_that_never_started_has_no_logs(pool, two_hosts):
    """Nobody is asked."""
    claim = await pool.claim(1)
    assert wanted_logs(claim, [], pool.service.books, None) == ()
    assert wanted_logs(claim, [], pool.service.books, "scheduler")[0].hosts == ()


async def test_process_that_is_not_the_claims_is_not_found(pool, two_hosts):
    """Neither another's lease nor what is no process at all."""
    claim, leases = two_hosts
    with pytest.raises(NotFound, match="no process l-none of claim"):
        wanted_logs(claim, leases, pool.service.books, "l-none")


async def test_hosts_answer_each_for_themselves(a_claim, host):
    """One that is not connected takes nothing away from the other."""
    links = host("a", [ProcessLog(process="scheduler", host="lies", lines=("up",))])
    wanted = [SCHEDULER, Wanted(process="l-1", hosts=("gone",))]
    found = await fetch_logs(a_claim, wanted, 10, links, Books())
    assert [(log.host, log.lines, log.problem) for log in found] == [
        ("a", ("up",), ""),
        ("gone", (), "No answer came from gone."),
    ]


async def test_silent_host_is_waited_for_a_moment_only(a_claim, host, monkeypatch):
    """What others said is told all the same."""
    monkeypatch.setattr(process_logs, "ANSWER_WITHIN_S", 0.05)
    host("a", [ProcessLog(process="scheduler", host="a", lines=("up",))])
    links = host("b")
    found = await fetch_logs(
        a_claim, [SCHEDULER, Wanted(process="l-1", hosts=("b",))], 10, links, Books()
    )
    assert [log.problem for log in found] == ["", "No answer came from b."]
    _answer(links.find("b"), [])  # too late: nobody waits for it


async def test_log_that_is_not_kept_is_said_so(a_claim, host):
    """The host answers, and has nothing of it."""
    links = host("a", [])
    [log] = await fetch_logs(a_claim, [SCHEDULER], 10, links, Books())
    assert (log.host, log.problem) == ("a", "No log of it is kept.")


async def test_scheduler_is_found_on_whichever_host_kept_it(a_claim, host):
    """The others have nothing, which is no problem."""
    host("a", [])
    links = host("b", [ProcessLog(process="scheduler", host="b", lines=("up",))])
    wanted = Wanted(process="scheduler", hosts=("a", "b"))
    [log] = await fetch_logs(a_claim, [wanted], 10, links, Books())
    assert (log.host, log.lines) == ("b", ("up",))


async def test_question_that_nobody_waits_for_any_more_is_not_asked(a_claim, host):
    """Whoever asked may have gone, while the agent was slow to listen."""
    links = host("a")
    asking = asyncio.create_task(fetch_logs(a_claim, [SCHEDULER], 10, links, Books()))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    await asyncio.sleep(0)
    assert links.find("a").questions.next_unsent() is None


async def test_agent_is_asked_only_so_much_at_a_time(a_claim, host):
    """Each answer may be large; who comes too much is told at once that there is none."""
    questions = host("a").find("a").questions
    answers = [questions.ask(a_claim.id, ["scheduler"], 1) for _ in range(100)]
    assert 0 < sum(not answer.cancelled() for answer in answers) < 100
    answers[0].cancel()
    await asyncio.sleep(0)
    assert not questions.ask(a_claim.id, ["scheduler"], 1).cancelled()


@pytest.fixture
async def a_claim(pool):
    """Any claim."""
    return replace(await pool.claim(1), scheduler=SchedulerPlace(host_id="a"))


def _answer(link, logs):
    query = link.questions.next_unsent()
    link.questions.take(LogAnswer(id=query.id, logs=tuple(logs)))
