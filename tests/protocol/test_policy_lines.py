"""The line of a key: what an admin jumps to in their editor."""

import tomllib

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.policy import refusals_of
from jupyter_gpupool.protocol.policy_lines import line_of, line_of_refusal

_DOCUMENT = '''\
# [queues.none]
[groups]
phd = [
  "bob",   # weight = 1
  "cleo",
]

[queues.research]
guarantee = { gpus = 12, models = { A100 = 4 } }
note = """
weight = 3
"""
weight = 2

[queues."a.b"]
limit.gpus = 4
'users' = ["x"]   # end

[[idle.rules]]
after = "20min"
[idle.rules.keep_alive]
day = "4h"
[[idle.rules]]
after = "5min"
[scheduling]
grace = "30s"'''
_EVERY_FORM = '''
# a comment
[queues.vision]
weight = 2
limit = { gpus = 2,  models = { A100 = 1 } }
users = [
  "ann",  # one a line
  "bob",
]
note = """
weight = 3
[queues.no]
"""
"odd.name" = 1
dotted.key = 4

[[idle.rules]]
name = "a"

[[idle.rules]]

name = "b"
[idle.rules.match]
queues = ["vision"]
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("groups", 2),
        ("groups.phd", 3),
        ("groups.phd.1", 3),
        ("queues", 8),
        ("queues.research", 8),
        ("queues.research.guarantee.models.A100", 9),
        ("queues.research.weight", 13),
        ("queues.research.limit", 8),
        ("queues.a.b", 15),
        ("queues.a.b.limit.gpus", 16),
        ("queues.a.b.users.0", 17),
        ("idle.rules.0.after", 20),
        ("idle.rules.0.keep_alive.day", 22),
        ("idle.rules.1.after", 24),
        ("idle.rules.1.warn", 23),
        ("scheduling.grace", 26),
        ("queues.none.weight", 8),
        ("nowhere", None),
        ("", None),
    ],
)
def test_key_is_found_where_it_begins(key, line):
    """Or else the nearest above it; comments, texts and values are no keys."""
    assert tomllib.loads(_DOCUMENT)
    assert line_of(_DOCUMENT, key) == line


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("queues.vision", 3),
        ("queues.vision.weight", 4),
        ("queues.vision.limit.models.A100", 5),
        ("queues.vision.users.1", 6),
        ("queues.vision.note", 10),
        ("queues.vision.odd.name", 14),
        ("queues.vision.dotted.key", 15),
        ("idle.rules.0.name", 18),
        ("idle.rules.1", 20),
        ("idle.rules.1.name", 22),
        ("idle.rules.1.match.queues.0", 24),
        ("queues.vision.missing", 3),
        ("idle.rules.7.name", 17),
        ("nothing", None),
        ("", None),
    ],
)
def test_key_is_found_in_every_form(key, line):
    """What is not there stands where the table stands in which it should."""
    assert line_of(_EVERY_FORM, key) == line


def test_text_that_is_no_toml_has_the_line_of_the_parser():
    """A refusal without a key may name its line itself."""
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads("[queues.a]\nweight == 2\n")
    refusal = BadRequest(f"The policy is no TOML: {caught.value}.")
    assert line_of_refusal("", refusal) == 2
    assert line_of_refusal(_DOCUMENT, BadRequest("No.", field="queues.research.weight")) == 13


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("[queues.a]\n[queues.b", 2),
        ("a", 1),
        ("[queues.a]\nweight =", 2),
        (f"[queues.a]\npriority = {'9' * 5000}", None),
        (f"a = {'[' * 5000}", None),
    ],
)
def test_text_that_ends_too_soon_has_its_last_line(source, line):
    """And what the parser says without a place has none."""
    [refusal] = refusals_of(source)
    assert line_of_refusal(source, refusal) == line


def test_long_list_takes_no_time():
    """A user a line, thousands of them: the key behind them is found at once."""
    users = "".join(f'  "user{n}",\n' for n in range(100_000))
    assert line_of(f"[queues.a]\nusers = [\n{users}]\nweight = 1\n", "queues.a.weight") == 100_004


def test_large_document_takes_no_time():
    """A megabyte of one text, or of brackets, is looked at once."""
    for text in ('note = """' + "x\\n\n" * 200_000 + '"""\n', f"x = {'[' * 9000}{']' * 9000}\n"):
        assert line_of(text + "[queues.a]\nweight = 1\n", "queues.a.weight") == text.count("\n") + 2
