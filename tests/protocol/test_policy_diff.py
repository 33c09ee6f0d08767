"""What differs between two policies: what they say, and how they are written."""

import pytest

from jupyter_gpupool.protocol.policy_diff import diff
from jupyter_gpupool.protocol.policy_views import KeyChange

BEFORE = """
[queues.a]
weight = 2
limit = { gpus = 4, models = { A100 = 2 } }
users = ["ann"]
[[idle.rules]]
name = "night"
after = "20min"
[[idle.rules]]
name = "all"
match = { users = ["bob"] }
"""


def changes(before: str, after: str) -> tuple[KeyChange, ...]:
    return diff(before, after, names=("old", "new")).changes


@pytest.mark.parametrize(
    ("said", "instead", "key", "before", "after"),
    [
        ("weight = 2", "weight = 3", "queues.a.weight", "2", "3"),
        ("weight = 2\n", "", "queues.a.weight", "2", None),
        ("A100 = 2", "A100 = 1", "queues.a.limit.models.A100", "2", "1"),
        ('users = ["ann"]', 'users = ["ann", "bo"]', "queues.a.users", '["ann"]', '["ann", "bo"]'),
        ("[queues.a]", "scheduling.reclaim = true\n[queues.a]", "scheduling.reclaim", None, "true"),
        ('after = "20min"', 'after = "5min"', "idle.rules.night.after", '"20min"', '"5min"'),
        ('match = { users = ["bob"] }', "", "idle.rules.all.match.users", '["bob"]', None),
        ("[queues.a]", "[queues.b]\n[queues.a]", "queues.b", None, "{}"),
    ],
)
def test_what_is_said_otherwise_is_named_by_its_key(said, instead, key, before, after):
    """One key alone, with both values; None is not there."""
    found = changes(BEFORE, BEFORE.replace(said, instead))
    assert found == (KeyChange(key=key, before=before, after=after),)


def test_layout_and_comments_differ_in_the_text_alone():
    """Another order and another form say the same."""
    moved = BEFORE.replace("weight = 2\n", "").replace("[[idle", "weight = 2  # new\n[[idle", 1)
    found = diff(BEFORE, moved, names=("old", "new"))
    assert found.changes == ()
    assert found.text.splitlines()[:2] == ["--- old", "+++ new"]
    assert {"-weight = 2", "+weight = 2  # new"} <= set(found.text.splitlines())


def test_long_values_that_differ_at_their_end_differ():
    """However long: a user more among thousands."""
    users = ", ".join(f'"user{n}"' for n in range(3000))
    one, other = (f"[queues.a]\nusers = [{users}{more}]" for more in ("", ', "eve"'))
    [change] = changes(one, other)
    assert (change.key, change.after) == ("queues.a.users", f'[{users}, "eve"]')


def test_rules_without_names_go_by_their_number():
    """As do those of the same name."""
    for name in ("", 'name = "x"\n'):
        rules = f'[[idle.rules]]\n{name}after = "1h"\n[[idle.rules]]\n{name}after = "2h"\n'
        [change] = changes(rules, rules.replace('"2h"', '"3h"'))
        assert change.key == "idle.rules.1.after"


def test_text_that_is_no_toml_has_no_keys():
    """It is compared line by line all the same."""
    found = diff("[queues.a]", "[queues.a", names=("old", "new"))
    assert (found.changes, "+[queues.a" in found.text.splitlines()) == ((), True)


def test_same_documents_do_not_differ():
    """Nothing is an empty text."""
    assert not diff(BEFORE, BEFORE, names=("old", "new")).text
