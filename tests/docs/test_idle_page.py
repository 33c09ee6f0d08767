"""The page on idle claims shows rules that work, and leaves no key and no signal out."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema

from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol import idle_policy
from jupyter_gpupool.protocol.policy import parse_policy

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "idle.md").read_text()
[DOCUMENT] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_document_of_the_page_is_a_policy():
    """Copied as it is, and its last rule is that of the defaults with the two bounds on loops."""
    *_, everybody = parse_policy(DOCUMENT).idle
    assert everybody.least_use is not None
    assert everybody.longest is not None
    assert everybody == IdleRule(
        name="everybody", least_use=everybody.least_use, longest=everybody.longest
    )


def test_every_key_stands_on_the_page():
    """An admin finds all there is."""
    entries = (
        idle_policy.IdleRuleEntry,
        idle_policy.MatchEntry,
        idle_policy.SizeEntry,
        idle_policy.OrphanEntry,
        idle_policy.LeastUseEntry,
        idle_policy.LongestEntry,
        idle_policy.KeepAliveEntry,
        idle_policy.ChoiceEntry,
    )
    keys = {key for entry in entries for key in entry.model_fields}
    assert {key for key in keys if not re.search(rf"\b{key} =", DOCUMENT)} == set()


def test_every_signal_is_explained():
    """Whoever writes `signals` has to know what each is."""
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert told == {signal.value for signal in Signal}


def test_the_schema_accepts_what_the_pages_show_and_refuses_a_slip():
    """An editor that checks by it agrees with the manager."""
    schema = json.loads((DOCS / "policy.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    policy = re.findall(r"```toml\n(.*?)```", (DOCS / "policy.md").read_text(), re.DOTALL)
    assert [error.message for text in (DOCUMENT, *policy) for error in _errors(check, text)] == []
    assert list(_errors(check, DOCUMENT.replace("orphan =", "orphans =")))


def _errors(check, text):
    # What TOML reads becomes what JSON has, as in an editor: tables, lists, texts, numbers.
    return check.iter_errors(json.loads(json.dumps(tomllib.loads(text))))
