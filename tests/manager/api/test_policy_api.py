"""The policy over HTTP: seen, checked, applied, compared, and brought back."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from jupyter_gpupool.manager.service.in_force import Refused
from jupyter_gpupool.manager.service.policy_changes import DEFAULT_SOURCE
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.policy import Policy
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.policy import parse_policy

_URL = "/api/v1/policy"
_CLAIMS = "/api/v1/claims"
TEAMS = """
[queues.research]
guarantee = { gpus = 2 }
[queues.vision]
parent = "research"
guarantee = { gpus = 2 }
limit = { gpus = 3, models = { A100 = 1 } }
weight = 2
users = ["ann"]
leads = ["eve"]
[queues.others]
users = ["*"]
"""
OPEN = '[queues.others]\nusers = ["*"]\n'


@pytest.fixture
async def admin(site):
    """An admin of a site of four devices."""
    await site.host(devices=4)
    async with await site.client("root", Role.ADMIN) as client:
        yield client


async def apply(client, source=TEAMS, **more):
    """Apply a document that is not refused."""
    answer = await client.post(f"{_URL}/apply", json={"source": source, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_applied_policy_is_a_revision_with_author_time_and_comment(site, admin):
    """And one event says so to everybody, with the comment as its reason."""
    done = await apply(admin, comment="Vision has paid.")
    now = (await admin.get(_URL)).json()
    assert done == {"revision": 1, "is_new": True, "warnings": done["warnings"]}
    applied = now["applied"]
    assert (now["revision"], applied["by"], applied["source"]) == (1, "root", TEAMS)
    assert (applied["comment"], applied["restores"]) == ("Vision has paid.", None)
    async with await site.client("bob") as bob:
        events = (await bob.get("/api/v1/events")).json()
    [told] = [event["reason"] for event in events if event["kind"] == EventKind.POLICY_APPLIED]
    assert told == "root applied revision 1 of the policy: Vision has paid."


async def test_same_document_again_is_no_new_revision(admin):
    """Nor an event."""
    await apply(admin)
    assert await apply(admin) == {"revision": 1, "is_new": False, "warnings": []}
    assert [each["revision"] for each in (await admin.get(f"{_URL}/revisions")).json()] == [1]


async def test_repeated_request_applies_once(admin):
    """The same key gets the same answer, whatever was applied since."""
    body, key = {"source": TEAMS, "expected_revision": 0}, {"Idempotency-Key": "once"}
    first = (await admin.post(f"{_URL}/apply", json=body, headers=key)).json()
    await apply(admin, OPEN)
    again = (await admin.post(f"{_URL}/apply", json=body, headers=key)).json()
    assert (again["revision"], again) == (1, first)
    assert (await admin.get(_URL)).json()["revision"] == 2


@pytest.mark.parametrize("how", ["apply", "rollback"])
async def test_change_on_top_of_an_unseen_revision_is_refused(admin, how):
    """Two admins at once: the second one looks again first."""
    await apply(admin)
    await apply(admin, OPEN, expected_revision=1)
    body = {"apply": {"source": TEAMS}, "rollback": {"revision": 1}}[how]
    answer = await admin.post(f"{_URL}/{how}", json={**body, "expected_revision": 1})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "Revision 2 of the policy is in force, and not 1."
    assert (await admin.get(_URL)).json()["revision"] == 2


async def test_of_two_admins_at_the_same_moment_one_wins(admin):
    """Even within one transaction; the other one is told which revision is in force."""
    sources = [f"{OPEN}# {number}\n" for number in range(5)]
    bodies = [{"source": source, "expected_revision": 0} for source in sources]
    asked = (admin.post(f"{_URL}/apply", json=body) for body in bodies)
    statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(statuses) == [200, 409, 409, 409, 409]
    [made] = (await admin.get(f"{_URL}/revisions")).json()
    now = (await admin.get(_URL)).json()
    assert made["revision"] == now["revision"] == 1
    assert now["applied"]["source"] == sources[statuses.index(200)]


@pytest.mark.parametrize("seed", range(5))
async def test_history_is_what_was_done(admin, seed):
    """Whatever admins apply, mistake and bring back: numbers grow by one, nothing is rewritten."""
    draw, told = random.Random(seed), [DEFAULT_SOURCE]
    for _ in range(25):
        source = draw.choice([OPEN, TEAMS, f"{OPEN}# {draw.random()}\n", "[queues.x]\nx = 1\n"])
        back = draw.randrange(len(told) + 1)
        if draw.random() < 0.4:
            await admin.post(f"{_URL}/rollback", json={"revision": back})
            source = told[back] if back < len(told) else ""
        else:
            await admin.post(f"{_URL}/apply", json={"source": source})
        is_new = source and "x = 1" not in source and (len(told) == 1 or source != told[-1])
        told += [source] if is_new else []
    made = [(await admin.get(f"{_URL}/revisions/{n}")).json()["source"] for n in range(len(told))]
    assert made == told
    assert (await admin.get(_URL)).json()["revision"] == len(told) - 1


_WRONG = [
    ("[queues.a]\nweigth = 2\n", 2, "queues.a.weigth"),
    ("[queues.a]\n\nweight = -2\n", 3, "queues.a.weight"),
    ("[queues.a]\n[queues.b]\nparent = 'c'\n", 3, "queues.b.parent"),
    ("[queues.a]\nguarantee = { gpus = 9 }\n", 2, "queues.a.guarantee"),
    ("[queues.a]\nlimit = { gpus = 1 }\nguarantee = { gpus = 2 }", 3, "queues.a.guarantee"),
    ("[queues.a]\n[scheduling]\ngrace = 'soon'\n", 3, "scheduling.grace"),
    ("[queues.a]\ngroups = ['g']\n", 1, "queues.a"),
    ("[queues.a]\nweight == 2\n", 2, ""),
    ("# nothing\n", None, "queues"),
]


@pytest.mark.parametrize(("source", "line", "key"), _WRONG)
async def test_refused_policy_names_line_and_key_and_changes_nothing(admin, source, line, key):
    """The same when it is checked, and when it is applied."""
    await apply(admin)
    [problem] = (await admin.post(f"{_URL}/check", json={"source": source})).json()["problems"]
    assert (problem["line"], problem["key"]) == (line, key)
    answer = await admin.post(f"{_URL}/apply", json={"source": source})
    told = answer.json()
    assert (answer.status_code, told["field"]) == (422, key)
    assert line is None or f"line {line}" in f"{told['detail']} {told['hint']}"
    assert (await admin.get(_URL)).json()["applied"]["source"] == TEAMS


async def test_check_tells_every_wrong_key_at_once(admin):
    """Nobody mends a file one refusal at a time."""
    source = "[queues.a]\nweigth = 2\n[queues.b]\npriority = 1.5\nmin_runtime = 3\n"
    answer = (await admin.post(f"{_URL}/check", json={"source": source})).json()
    assert [(each["line"], each["key"]) for each in answer["problems"]] == [
        (2, "queues.a.weigth"),
        (4, "queues.b.priority"),
        (5, "queues.b.min_runtime"),
    ]
    assert all("See line" not in each["message"] for each in answer["problems"])


async def test_check_changes_nothing_and_tells_what_would_differ(admin):
    """Against the revision in force, by key and line by line."""
    await apply(admin)
    source = TEAMS.replace("weight = 2", "weight = 3  # more")
    answer = (await admin.post(f"{_URL}/check", json={"source": source})).json()
    assert (answer["revision"], answer["problems"], answer["warnings"]) == (1, [], [])
    assert answer["diff"]["changes"] == [
        {"key": "queues.vision.weight", "before": "2", "after": "3"}
    ]
    assert "-weight = 2\n+weight = 3  # more" in answer["diff"]["text"]
    assert (await admin.get(_URL)).json()["revision"] == 1


async def test_rollback_is_a_new_revision_that_names_the_one_it_restores(admin):
    """History only grows."""
    await apply(admin)
    await apply(admin, OPEN, comment="everybody")
    body = {"revision": 1, "comment": "too soon"}
    done = (await admin.post(f"{_URL}/rollback", json=body)).json()
    newest, second, first = (await admin.get(f"{_URL}/revisions")).json()
    assert (done["revision"], done["is_new"]) == (3, True)
    assert (newest["revision"], newest["restores"], newest["comment"]) == (3, 1, "too soon")
    assert (second["comment"], first["restores"], newest["source"]) == ("everybody", None, "")
    assert (await admin.get(f"{_URL}/revisions/3")).json()["source"] == TEAMS
    events = (await admin.get("/api/v1/events")).json()
    assert events[-1]["reason"] == "root went back to revision 1 of the policy, now 3: too soon."


async def test_rollback_to_the_beginning_is_one_queue_for_everybody(admin):
    """Revision 0 was never applied, and means the default."""
    await apply(admin)
    await admin.post(f"{_URL}/rollback", json={"revision": 0})
    now = (await admin.get(_URL)).json()
    assert (now["revision"], [queue["name"] for queue in now["queues"]]) == (2, ["default"])
    source = now["applied"]["source"]
    assert replace(parse_policy(source), rules=Policy().rules) == Policy()


@pytest.mark.parametrize("revision", [9, 2**31 - 1])
async def test_revision_that_is_not_there_is_not_found(admin, revision):
    """With the command that lists those that are."""
    answers = [
        await admin.get(f"{_URL}/revisions/{revision}"),
        await admin.get(f"{_URL}/diff?from={revision}"),
        await admin.post(f"{_URL}/rollback", json={"revision": revision}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert answers[0].json()["hint"] == "See: jupyter gpupool policy history"


async def test_revision_that_makes_no_sense_any_more_is_not_restored(site, admin):
    """Hosts have gone since: the numbers are told, and nothing changes."""
    await apply(admin)
    await apply(admin, OPEN)
    books = site.parts.service.books
    for host in list(books.hosts.values()):
        books.hosts[host.id] = replace(host, devices=host.devices[:1])
    answer = await admin.post(f"{_URL}/rollback", json={"revision": 1})
    assert answer.status_code == 422
    assert "add up to 2 devices, but the pool has 1" in answer.json()["detail"]
    assert (await admin.get(_URL)).json()["revision"] == 2


async def test_history_is_paged(admin):
    """Newest first, and on from any revision."""
    for number in range(1, 6):
        await apply(admin, f"{OPEN}# {number}\n")
    first = (await admin.get(f"{_URL}/revisions?limit=2")).json()
    then = (await admin.get(f"{_URL}/revisions?limit=2&before={first[-1]['revision']}")).json()
    assert [each["revision"] for each in (*first, *then)] == [5, 4, 3, 2]
    assert [each["is_in_force"] for each in (*first, *then)] == [True, False, False, False]


async def test_two_revisions_are_compared(admin):
    """The last change unless others are named; in either direction."""
    await apply(admin)
    await apply(admin, TEAMS.replace('users = ["ann"]', 'users = ["ann", "bob"]'))
    last = (await admin.get(f"{_URL}/diff")).json()
    back = (await admin.get(f"{_URL}/diff?from=2&to=1")).json()
    change = {"key": "queues.vision.users", "before": '["ann"]', "after": '["ann", "bob"]'}
    assert last["changes"] == [change]
    assert back["changes"] == [change | {"before": change["after"], "after": change["before"]}]
    assert last["text"].splitlines()[:2] == ["--- revision 1", "+++ revision 2"]


async def test_admin_sees_how_every_queue_stands(site, admin):
    """Ann holds two and waits for a claim of two more; the rest is nobody's."""
    await apply(admin)
    async with await site.client("ann") as ann:
        for least in (2, 2):
            await ann.post("/api/v1/claims", json={"workers": {"min": least, "max": least}})
        theirs = (await ann.get(_URL)).json()
    queues = {queue["name"]: queue for queue in (await admin.get(_URL)).json()["queues"]}
    vision, research = queues["vision"], queues["research"]
    assert list(queues) == ["research", "vision", "others"]
    assert (vision["held"], vision["waiting"], vision["waiting_claims"]) == (2, 2, 1)
    assert (research["held"], research["waiting"], queues["others"]["held"]) == (2, 2, 0)
    assert (vision["share"], vision["weight"], vision["parent"]) == (3, 2, "research")
    assert vision["guarantee"] == {"gpus": 2, "cpus": None, "memory_bytes": None, "models": {}}
    assert vision["limit"]["models"] == {"a100": 1}
    assert (vision["users"], vision["leads"]) == (["ann"], ["eve"])
    assert [queue["name"] for queue in theirs["queues"]] == ["vision", "others"]


async def test_admin_sees_how_many_claims_would_fit_if_others_moved(site):
    """As many as are told so themselves, in their queue and in those above it."""
    agents = [await site.host(name, 2) for name in ("a", "b")]
    async with await site.client("ann") as ann, await site.client("root", Role.ADMIN) as admin:
        await apply(admin, '[queues.lab]\n[queues.team]\nparent = "lab"\nusers = ["*"]\n')
        for near in ("a", "b"):
            await ann.post(_CLAIMS, json={"workers": {"min": 1, "max": 1}, "near": near})
        for agent in agents:
            await site.come_up(agent)
        pair = {"workers": {"min": 1, "max": 1}, "gpus_per_worker": 2}
        told = (await ann.post(_CLAIMS, json=pair)).json()["wait"]["reason"]
        queues = {queue["name"]: queue for queue in (await admin.get(_URL)).json()["queues"]}
    assert "it would fit if 1 claim moved" in told
    assert {name: queue["fit_if_moved"] for name, queue in queues.items()} == {"lab": 1, "team": 1}


async def test_user_sees_their_own_queues_and_nobodys_name(site, admin):
    """Neither the document, nor who else may claim, nor who applied it."""
    await apply(admin, comment="secret plans")
    async with await site.client("bob") as bob:
        answer = await bob.get(_URL)
    told = answer.json()
    assert [queue["name"] for queue in told["queues"]] == ["others"]
    assert (told["revision"], told["applied"], told["warnings"]) == (1, None, [])
    assert [
        word for word in ("ann", "eve", "root", '"vision"', "plans") if word in answer.text
    ] == []


async def test_everybody_sees_what_is_theirs_of_a_queue(site, admin):
    """What they hold, and what they may: others' part is not told."""
    limits = 'per_user = { gpus = 3, claims = 4, gpu_hours = 10, period = "7d" }'
    await apply(admin, f"{OPEN}{limits}\n")
    async with await site.client("ann") as ann, await site.client("bob") as bob:
        await ann.post("/api/v1/claims", json={"workers": {"min": 2, "max": 2}})
        await bob.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        [queue] = (await ann.get(_URL)).json()["queues"]
    yours = queue["yours"]
    assert (queue["held"], yours["held"], yours["most_held"]) == (3, 2, 3)
    assert (yours["claims"], yours["most_claims"]) == (1, 4)
    assert (yours["most_gpu_hours"], yours["period_s"]) == (10, 7 * 86_400)
    assert 0 <= yours["gpu_hours"] < 1
    [queue] = (await admin.get(_URL)).json()["queues"]
    assert (queue["held"], queue["yours"]["held"], queue["yours"]["claims"]) == (3, 0, 0)


async def test_pool_without_a_policy_has_revision_zero(site):
    """One queue for everybody, and its document can be read."""
    async with await site.client("root", Role.ADMIN) as root:
        now = (await root.get(_URL)).json()
        compared = (await root.get(f"{_URL}/diff")).json()
    assert (now["revision"], now["applied"]["by"], now["applied"]["at"]) == (0, None, None)
    assert [queue["name"] for queue in now["queues"]] == ["default"]
    assert compared == {"changes": [], "text": ""}


async def test_newest_revision_that_is_refused_now_is_told(site, admin):
    """As after an upgrade: what holds in its place, and which number comes next."""
    await apply(admin)
    books = site.parts.service.books
    refused = Refused(revision=5, source="[queues.x]\nold = 1\n", why="No key old.")
    books.policy = replace(books.policy, refused=refused)
    now = (await admin.get(_URL)).json()
    checked = (await admin.post(f"{_URL}/check", json={"source": OPEN})).json()
    [told] = now["warnings"]
    assert told.startswith("Revision 5 of the policy is refused by this version of the manager")
    assert (now["revision"], now["applied"]["source"]) == (1, TEAMS)
    assert (checked["revision"], checked["next_revision"]) == (1, 6)
    assert (await apply(admin))["revision"] == 6
    assert (await admin.get(_URL)).json()["warnings"] == []


async def test_policy_file_that_will_win_is_told(site, admin, tmp_path):
    """At each look and change, as long as it says something else or cannot be read."""
    file, service = tmp_path / "policy.toml", site.parts.service
    service.settings = replace(service.settings, policy_file=str(file))
    file.write_text(TEAMS)
    [told] = (await apply(admin, OPEN))["warnings"]
    assert (await admin.get(_URL)).json()["warnings"] == [told]
    assert told.startswith(f"The manager's policy file {file} says something else; at its next")
    assert (await apply(admin))["warnings"] == []
    file.unlink()
    [told] = (await admin.get(_URL)).json()["warnings"]
    assert "cannot be read" in told
    async with await site.client("bob") as bob:
        assert (await bob.get(_URL)).json()["warnings"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": 1},
        {"source": "x" * 250_001},
        {"source": OPEN, "comment": "two\nlines"},
        {"source": OPEN, "comment": "x" * 501},
        {"source": OPEN, "expected_revision": -1},
        {"source": OPEN, "expected": 1},
        {"source": "\ud800"},
    ],
)
async def test_nonsense_is_refused(admin, body):
    """Neither too long, nor misspelt, nor what cannot be stored."""
    answer = await admin.post(f"{_URL}/apply", content=json.dumps(body).encode())
    assert (answer.status_code, answer.headers["content-type"]) == (
        422,
        "application/problem+json",
    )
