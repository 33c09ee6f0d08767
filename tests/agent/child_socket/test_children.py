"""The agent's socket and its children: what they say, and what they are told."""

import dataclasses
import fcntl
import os
import socket

from agent_harness.child_ends import (
    BUSY,
    LISTENS,
    REFUSED,
    SCHEDULER,
    WORKER,
)

from jupyter_gpupool.agent import child_connection
from jupyter_gpupool.protocol.launch import (
    MOST_LOCKS,
    Lively,
    Orders,
    Role,
    SchedulerState,
    WorkerState,
)


async def test_admitted_child_is_heard(agent, connect):
    """Hello, then states; the agent is asked with the kernel's word on who it is."""
    child = await connect()
    child.say(WORKER, WorkerState(registered=True))
    assert await agent.next("heard") == WorkerState(registered=True)
    assert agent.asked == [(os.getpid(), os.getuid())]


async def test_admission_is_answered_with_whole_orders(agent, connect):
    """A child always hears something: it then knows that it is known."""
    child = await connect()
    child.say(WORKER)
    assert await child.hear() == Orders()


async def test_orders_reach_a_connected_child(agent, connect):
    """New orders are sent at once."""
    child = await connect()
    child.say(SCHEDULER)
    await child.hear()
    agent.socket.order(Role.SCHEDULER, "claim", "", Orders(keep_workers=2))
    assert await child.hear() == Orders(keep_workers=2)


async def test_orders_are_repeated_on_the_next_connection(agent, connect):
    """A child that was away hears its last orders, whole."""
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    for _ in range(2):
        child = await connect()
        child.say(WORKER)
        assert await child.hear() == Orders(scheduler_address="tls://h:1")


async def test_forgotten_orders_are_not_repeated(agent, connect):
    """Who is gone for good leaves nothing behind."""
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    agent.socket.forget(Role.WORKER, "claim", "lease")
    child = await connect()
    child.say(WORKER)
    assert await child.hear() == Orders()


async def test_locks_come_back_with_hello(agent, tmp_path):
    """The descriptors beside a hello are handed on, open and in their order."""
    locks = [os.open(tmp_path / f"lock-{n}", os.O_RDWR | os.O_CREAT) for n in range(MOST_LOCKS)]
    fcntl.flock(locks[0], fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as child:
        child.connect(str(tmp_path / "agent.sock"))
        socket.send_fds(child, [WORKER.encode()], locks)
        returned = await agent.next("locks")
    assert [os.fstat(fd).st_ino for fd in returned] == [os.fstat(fd).st_ino for fd in locks]
    assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in returned)
    for fd in (*locks, *returned):
        os.close(fd)


async def test_newer_connection_replaces_the_older(agent, connect):
    """A child that reconnects before its old connection is seen to end goes on hearing orders."""
    older, newer = await connect(), await connect()
    older.say(WORKER)
    await older.hear()
    newer.say(WORKER)
    await newer.hear()
    assert await older.is_turned_away()
    agent.socket.order(Role.WORKER, "claim", "lease", Orders(scheduler_address="tls://h:1"))
    assert await newer.hear() == Orders(scheduler_address="tls://h:1")


async def test_child_that_does_not_read_gets_only_its_last_orders(agent, connect):
    """A stopped child neither blocks the agent nor makes it remember every order."""
    child = await connect()
    child.say(SCHEDULER)
    await child.hear()
    child.reader._transport.pause_reading()
    for count in range(20_000):
        agent.socket.order(Role.SCHEDULER, "claim", "", Orders(keep_workers=count))
    child.reader._transport.resume_reading()
    heard = [await child.hear()]
    while heard[-1] != Orders(keep_workers=19_999):
        heard.append(await child.hear())
    assert len(heard) < 19_999


async def test_many_workers_fit_into_a_schedulers_state(agent, connect):
    """A line of an admitted scheduler may be long: it names every worker."""
    state = SchedulerState(
        address="tls://h:1",
        dashboard_port=1,
        workers=tuple(f"lease-{number:032}" for number in range(5000)),
    )
    child = await connect()
    child.say(SCHEDULER, state)
    assert await agent.next("heard") == state
    assert len(state.encode()) > child_connection._STRANGERS_LINE_BYTES


async def test_what_goes_on_in_a_scheduler_is_passed_on(agent, connect):
    """It is no state of the scheduler: nothing has to be kept of it."""
    child = await connect()
    child.say(SCHEDULER, Lively(activity=BUSY))
    assert await agent.next("lively") == BUSY
    assert not agent.all("heard")


async def test_where_the_results_are_arrives_whole(agent, connect):
    """Phases, counts of many bytes, and each result that cannot be kept."""
    state = dataclasses.replace(LISTENS, keeping=REFUSED)
    child = await connect()
    child.say(SCHEDULER, state)
    assert await agent.next("heard") == state


async def test_chatty_child_is_heard_a_part_at_a_time(agent, connect):
    """A child that says a thousand things at once has the agent for some, then others' turn is."""
    child = await connect()
    child.say(WORKER)
    await child.hear()
    states = [WorkerState(registered=bool(i % 2)) for i in range(300)]
    child.say(*states)
    await agent.next("heard")
    assert len(agent.all("heard")) < 100
    await agent.until(lambda: len(agent.all("heard")) == 300)
