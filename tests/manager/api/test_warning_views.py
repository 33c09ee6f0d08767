"""What a user is shown of a warning: all that it takes to answer it."""

from datetime import timedelta
from functools import partial

import pytest
from manager_harness.idle_player import a_running_claim, apply

from jupyter_gpupool.manager.api.warning_views import warned_views, warning_view
from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.using import KeepClaim, keep_claim
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.protocol.api import Role

POLICY = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
keep_alive = { longest = "2h", per_day = "150min", reason = true }
"""
ALWAYS = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "week"
longest = { after = "2h", notice = "1h", action = "release" }
after = "never"
"""
MINUTE = 60
ANN = Caller(user="ann", role=Role.USER, credential_id="t")
ROOT = Caller(user="root", role=Role.ADMIN, credential_id="r")


@pytest.fixture
async def idler(pool):
    """A claim of two devices under a rule that releases."""
    await apply(pool, POLICY)
    return await a_running_claim(pool)


def shown(idler, caller=ANN):
    """Its warning, as its user is shown it now."""
    books = idler.pool.service.books
    return warning_view(books.claims[idler.claim_id], books, idler.pool.time.wall, caller)


async def test_claim_without_warning_shows_none(idler):
    """And is not among the warned."""
    assert shown(idler) is None
    assert warned_views(ANN, idler.pool.service.books, idler.pool.time.wall) == ()


async def test_warning_says_what_is_held_what_comes_and_what_can_be_done(idler):
    """Typed, so that nobody has to read a sentence to draw a button."""
    await idler.rest(15 * MINUTE)
    view = shown(idler)
    assert (view.rule, view.action) == ("all", OnIdle.RELEASE)
    assert (view.devices, view.are_several) == ("2 Sim 16", True)
    assert view.why == (
        "Your 2 Sim 16 have been idle for 15 min (no tasks, no calls, kernel at rest, GPU 0 %,"
        " 31 GiB held)."
    )
    assert (view.keep.longest_s, view.keep.asks_reason) == (7200, True)
    assert view.can_hibernate


async def test_keep_is_offered_as_far_as_the_day_goes(idler):
    """What was kept before counts."""
    await idler.rest(15 * MINUTE)
    command = KeepClaim(
        caller=ANN, claim_id=idler.claim_id, duration=timedelta(hours=2), reason="lunch"
    )
    await idler.pool.service.execute(partial(keep_claim, command=command))
    await idler.rest(2 * 3600 + MINUTE)
    assert shown(idler).keep.longest_s == 30 * MINUTE


async def test_what_nobody_can_postpone_offers_no_keep(pool):
    """How long a claim may hold devices at all does not depend on its user."""
    await apply(pool, ALWAYS)
    idler = await a_running_claim(pool)
    await idler.rest(61 * MINUTE)
    assert shown(idler).keep is None


async def test_only_its_own_user_is_shown_it_in_the_pool_s_status(idler):
    """With its name."""
    await idler.rest(15 * MINUTE)
    books, now = idler.pool.service.books, idler.pool.time.wall
    (view,) = warned_views(ANN, books, now)
    assert (view.claim, view.warning.rule) == (idler.claim_id, "all")
    assert warned_views(Caller(user="bob", role=Role.ADMIN, credential_id="t"), books, now) == ()


async def test_who_waits_is_told_to_admins_alone(idler):
    """Others hear how many; a stranger's claim is nobody else's business."""
    await apply(idler.pool, POLICY + "[scheduling]\nreclaim = false\n")
    waiting = await idler.pool.claim(1, user="bob")
    await idler.rest(15 * MINUTE)
    own, admins = shown(idler).evidence, shown(idler, ROOT).evidence
    assert (own.wanted_by, own.waiting) == ((), 1)
    assert (admins.wanted_by, admins.waiting) == ((waiting.id,), 1)
    assert waiting.id not in shown(idler).model_dump_json()
