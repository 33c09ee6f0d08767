"""Whose a claim's processes are, and whose they never are."""

import os
import pwd
import threading

import pytest

from jupyter_gpupool.agent.users import UserRules, Users, identity_of, read_uid_min
from jupyter_gpupool.pool.errors import NotAllowed, NotFound, Unavailable

ME = pwd.getpwuid(os.getuid()).pw_name
RULES = UserRules()
NOBODY = pwd.getpwnam("nobody")


def test_root_agent_starts_nothing_as_root_unasked() -> None:
    """A manager that names no user is no reason to hand out root."""
    with pytest.raises(NotAllowed, match="runs as root"):
        identity_of(None, RULES, agent_uid=0)


def test_root_agent_may_be_told_to_run_claims_as_itself() -> None:
    """As an embedded pool or a container does."""
    assert identity_of(None, UserRules(run_claims_as_agent=True), agent_uid=0) is None


def test_plain_agent_runs_claims_as_itself() -> None:
    """It has no right to give away."""
    assert identity_of(None, RULES, agent_uid=1000) is None


@pytest.mark.parametrize("user", ["root", "daemon", "bin"])
def test_system_account_is_refused(user) -> None:
    """An owner who is named like one gets none of its rights."""
    with pytest.raises(NotAllowed, match="system account") as told:
        identity_of(user, UserRules(run_claims_as_agent=True), agent_uid=0)
    assert "token create --user … --os-user …" in told.value.hint


def test_system_account_may_be_allowed() -> None:
    """Its admin knows the host."""
    identity = identity_of("daemon", UserRules(allow_system_users=True), agent_uid=0)
    assert identity is not None
    assert identity.uid == pwd.getpwnam("daemon").pw_uid


def test_person_is_looked_up() -> None:
    """With their group."""
    identity = identity_of(NOBODY.pw_name, RULES, agent_uid=0)
    assert identity is not None
    assert (identity.uid, identity.gid) == (NOBODY.pw_uid, NOBODY.pw_gid)


def test_plain_agent_starts_nothing_for_others() -> None:
    """It could not."""
    with pytest.raises(NotAllowed, match="does not run as root"):
        identity_of("daemon", RULES, agent_uid=4000)


@pytest.mark.parametrize("user", ["no-such-user-here", "a\0b"])
def test_unknown_user_is_said(user) -> None:
    """The admin can act on it."""
    with pytest.raises(NotFound, match="no user") as told:
        identity_of(user, RULES, agent_uid=0)
    assert "token create --user … --os-user …" in told.value.hint


@pytest.mark.parametrize(
    ("text", "uid_min"),
    [("UID_MIN\t\t 500\n", 500), ("#UID_MIN 5\n", 1000), ("", 1000), ("UID_MIN x\n", 1000)],
)
def test_people_begin_where_the_host_says(tmp_path, text, uid_min) -> None:
    """Or at 1000, as on any Linux."""
    (tmp_path / "login.defs").write_text(text)
    assert read_uid_min(tmp_path / "login.defs") == uid_min
    assert read_uid_min(tmp_path / "none") == 1000


async def test_user_is_asked_for_once_a_minute() -> None:
    """A directory service may be slow."""
    asked: list[str | None] = []

    def look_up(user: str | None, _: UserRules) -> None:
        asked.append(user)

    users = Users(RULES, look_up)
    await users.identity_of("ann")
    await users.identity_of("ann")
    users.close()
    assert asked == ["ann"]


async def test_silent_directory_is_one_sentence() -> None:
    """The agent goes on meanwhile."""
    answered = threading.Event()
    users = Users(RULES, lambda *_: answered.wait(10) and None, answers_within_s=0.01)
    with pytest.raises(Unavailable, match="does not answer"):
        await users.identity_of("ann")
    answered.set()
    users.close()
