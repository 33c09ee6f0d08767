"""A check tells all mistakes that stand for themselves at once, in the order of their lines."""

from manager_harness.pool_player import PoolPlayer

from jupyter_gpupool.manager.service.policy_check import check_policy

FOUR_MISTAKES = """
[queues.vision]
weight = -1
[queues.speech]
parent = "nobody"
[queues.texts]
min_runtime = "soon"
[[idle.rules]]
name = "first"
match = { users = ["ann"] }
after = "10min"
warn = "20min"
[[idle.rules]]
name = "second"
after = "2min"
"""
UNSOUND_TIME = '[queues.texts]\nmin_runtime = "soon"\n'


def found(pool: PoolPlayer, source: str) -> list[tuple[str, str]]:
    """Where each refusal is, by key and hint."""
    checked = check_policy(pool.service.books, source, pool.time.wall.timestamp())
    return [(each.field, each.hint.split(".")[0]) for each in checked.refusals]


async def test_mistakes_of_queues_and_rules_are_told_together(pool):
    """Those of the tree too, though rules are refused."""
    assert found(pool, FOUR_MISTAKES.replace(UNSOUND_TIME, "")) == [
        ("queues.vision.weight", "See line 3"),
        ("queues.speech.parent", "See line 5"),
        ("idle.rules.0.warn", "See line 10"),
        ("idle.rules.1.after", "See line 13"),
    ]


async def test_mistake_in_reading_queues_comes_before_their_tree(pool):
    """Queues that cannot be read make no tree; rules are looked at all the same."""
    fields = [field for field, _ in found(pool, FOUR_MISTAKES)]
    assert fields == ["queues.texts.min_runtime", "idle.rules.0.warn", "idle.rules.1.after"]


async def test_guarantees_are_looked_at_though_a_rule_is_refused(pool):
    """Each queue whose children have too much, and the pool."""
    await pool.joined("a", 2)
    source = """
[queues.a]
guarantee = { gpus = 3 }
[queues.b]
guarantee = { gpus = 1 }
[queues.c]
parent = "b"
guarantee = { gpus = 2 }
[[idle.rules]]
name = "all"
after = "2min"
"""
    fields = [field for field, _ in found(pool, source)]
    assert fields == ["queues.a.guarantee", "queues.b.guarantee", "idle.rules.0.after"]


async def test_hundreds_of_mistakes_are_cut(pool):
    """Nobody reads more at once."""
    source = "".join(f"[queues.q{n}]\nweight = -1\n" for n in range(150))
    assert len(found(pool, source)) == 100


async def test_document_without_mistake_is_not_refused(pool):
    """Nothing is made up."""
    assert found(pool, '[queues.all]\nusers = ["*"]\n[[idle.rules]]\nname = "all"\n') == []
