"""The line of a key: found in every form that TOML has for it."""

import pytest

from jupyter_gpupool.protocol.toml_lines import line_of

DOCUMENT = '''
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
def test_a_key_stands_where_its_statement_begins(key, line):
    """What is not there stands where the table stands in which it should."""
    assert line_of(DOCUMENT, key) == line


def test_a_long_document_is_searched_and_not_read_line_by_line():
    """A thousand queues cost no more than a dozen readings."""
    text = "\n".join(f"[queues.q{n}]\nweight = {n}" for n in range(1000))
    assert line_of(text, "queues.q707.weight") == 2 * 707 + 2
