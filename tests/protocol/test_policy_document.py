"""The policy as an admin writes it: read whole, or refused in one sentence with its key."""

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.policy import Policy, PriorityClass, Resources, UserTerms
from jupyter_gpupool.pool.rules import SurplusOrder
from jupyter_gpupool.protocol.policy import parse_policy
from jupyter_gpupool.protocol.policy_diff import diff

WHOLE = """
[queues.research]
limit = { gpus = 16 }
[queues.vision]
parent = "research"
guarantee = { gpus = 8, cpus = 64, memory = "1TiB", models = { A100 = 4 } }
weight = 2
highest = "normal"
min_runtime = "10min"
own_min_runtime = "0"
users = ["ann"]
groups = ["phd"]
per_user = { gpus = 2.5, claims = 3, gpu_hours = 10, period = "7d" }
[groups]
phd = ["bob"]
[priorities.exam]
rank = 300
firm = true
[scheduling]
grace = "1min"
surplus_order = "least_attained_service"
moves = "done"
most_moved = 2
"""


def test_key_of_countless_parts_is_refused_at_once() -> None:
    """The parser would take minutes over it, and gigabytes."""
    with pytest.raises(BadRequest, match="line 2 has more than 64 dots"):
        parse_policy("\n" + ".".join(["a"] * 100_000) + " = 1")
    assert not diff("", ".".join(["a"] * 100_000) + " = 1", names=("old", "new")).changes


def test_pool_without_a_policy_has_the_rules_of_an_empty_one() -> None:
    """But that nobody takes back: there is nobody with a guarantee."""
    rules = parse_policy('[queues.default]\nusers = ["*"]').rules
    assert Policy().rules == rules


def test_every_key_of_a_queue_is_read():
    """Amounts become whole numbers, times seconds."""
    research, vision = parse_policy(WHOLE).queues
    assert research.limit == Resources(devices=16_000)
    assert vision.guarantee == Resources(
        devices=8000, cpu=64_000, memory_bytes=2**40, models=(("a100", 4000),)
    )
    assert (vision.parent, vision.weight, vision.highest) == ("research", 2, "normal")
    assert (vision.reclaim_min_runtime_s, vision.own_min_runtime_s) == (600, 0)
    assert vision.per_user == UserTerms(
        devices=2500, claims=3, device_s=36_000, period_s=7 * 86_400
    )


def test_rules_and_classes_are_read():
    """Classes that every pool has stay, own ones are added."""
    policy = parse_policy(WHOLE)
    assert policy.priorities == (
        *Policy().priorities,
        PriorityClass(name="exam", rank=300, firm=True),
    )
    assert policy.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE
    assert (policy.grace_s, policy.reclaims) == (60, True)
    assert (policy.rules.may_move, policy.rules.tells_moves, policy.rules.most_moved) == (
        True,
        False,
        2,
    )


def test_nobody_moves_unless_the_policy_says_so():
    """What would do is told, as in a pool without any policy."""
    for policy in (parse_policy("[queues.a]"), Policy()):
        assert (policy.rules.may_move, policy.rules.tells_moves) == (False, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[queues.a]\nguarante = {}", 'The policy knows no key "queues.a.guarante".'),
        ("[queues.a]\nguarantee = { gpus = -1 }", "queues.a.guarantee.gpus: "),
        ("[queues.a]\nlimit = { gpus = nan }", "queues.a.limit.gpus: "),
        ("[queues.a]\nmin_runtime = 'soon'", "queues.a.min_runtime: "),
        ("[queues.a]\nguarantee = { memory = '1 acre' }", "queues.a.guarantee.memory: "),
        ("[queues.a]\ngroups = ['g']", 'Queue "a" names the group "g"'),
        ("[queues.a]\nhighest = 'x'", 'Queue "a" names the priority class "x"'),
        ("[queues.a]\n[scheduling]\ngrace = '2h'", "scheduling.grace: "),
        ("[queues.a]\n[priorities.x]\nrank = 1.5", "priorities.x.rank: "),
        ("[queues.a]\n[scheduling]\nhalf_life = '0s'", "scheduling.half_life: "),
        ("[queues.a]\n[scheduling]\nmoves = 'no'", "scheduling.moves: "),
        ("[queues.a]\n[scheduling]\nmost_moved = 0", "scheduling.most_moved: "),
        ("[queues.a]\n[scheduling]\nmost_moved = 1.5", "scheduling.most_moved: "),
        ("[queues.a]\nper_user = { gpu_hours = 1, period = '0s' }", "queues.a.per_user.period: "),
        ('[queues."a\\nb"]', r"queues.'a\nb': it holds what cannot be printed."),
        (f"[queues.{'x' * 9999}]", f"queues.{'x' * 60}…: "),
        ("[queues.a\n", "The policy is no TOML: "),
        (f"[queues.a]\npriority = {'9' * 5000}", "The policy is no TOML: "),
        (f"a = {'[' * 5000}", "The policy is no TOML: "),
        ("", "queues: "),
    ],
)
def test_wrong_document_is_refused_by_its_key(text, said):
    """One sentence says where and what."""
    with pytest.raises(BadRequest) as refused:
        parse_policy(text)
    assert refused.value.message.startswith(said)
    assert "\n" not in refused.value.message


def test_empty_document_is_told_how_to_begin():
    """A queue for everybody is the least that can stand there."""
    with pytest.raises(BadRequest, match=r"has no queue\. Write at least one.*\[queues\.default\]"):
        parse_policy("")
