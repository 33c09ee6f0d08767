"""A stored policy that this version of the manager refuses: told, and no reason not to start."""

from dataclasses import replace
from functools import partial

import pytest
from manager_harness.remembering_store import NOTHING, RememberingStore
from manager_harness.virtual_time import START

from jupyter_gpupool.manager.service.last_policy import policy_at_start
from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.records import PolicyRevision
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.ids import UserName

TEAM = '[queues.{name}]\nusers = ["*"]\n'
NO_LONGER = "[queues.old]\nwish = 3\n"


def a_revision(number: int, source: str) -> PolicyRevision:
    return PolicyRevision(revision=number, at=START, by=UserName("root"), source=source)


def test_newest_that_is_understood_holds():
    """Those above it are not forgotten: the newest is what should hold."""
    revisions = [
        a_revision(4, NO_LONGER),
        a_revision(3, "no document"),
        a_revision(2, TEAM.format(name="b")),
        a_revision(1, TEAM.format(name="a")),
    ]
    found = policy_at_start(revisions)
    assert (found.revision, list(found.tree.queues)) == (2, ["b"])
    assert (found.refused.revision, "wish" in found.refused.why) == (4, True)
    assert found.next_revision == 5


@pytest.mark.parametrize("revisions", [[], [a_revision(1, NO_LONGER)]], ids=["none", "all refused"])
def test_default_holds_where_nothing_is_understood(revisions):
    """As in a pool that never had a policy; a number is not given twice."""
    found = policy_at_start(revisions)
    assert (found.revision, list(found.tree.queues)) == (0, ["default"])
    assert found.next_revision == len(revisions) + 1


@pytest.fixture
async def started(pool):
    """A service whose newest revision is refused, on the clock of the pool."""
    kept = (a_revision(2, NO_LONGER), a_revision(1, TEAM.format(name="a")))
    store = RememberingStore(replace(NOTHING, policies=kept))
    service = Service(store, Settings(), pool.time.clock())
    await service.start()
    yield service
    await service.close()


async def test_what_is_refused_is_told_without_its_content_and_with_it(started):
    """The first to whoever asks for its health, the second to admins."""
    [problem] = started.problems()
    assert problem.text == (
        "Revision 2 of the policy is refused by this version of the manager,"
        " so revision 1 is in force."
    )
    assert "wish" in problem.detail


@pytest.mark.parametrize("name", ["corrected", "a"], ids=["another", "what is in force anyway"])
async def test_next_one_that_is_applied_wins(started, name):
    """As a new revision, even if it says what holds now: else the refused one stays the newest."""
    command = ApplyPolicy(source=TEAM.format(name=name), by=UserName("root"))
    assert await started.execute(partial(apply_policy, command=command)) == 3
    assert (list(started.books.policy.tree.queues), started.problems()) == ([name], ())
