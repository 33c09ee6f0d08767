"""Decisions from other schedulers' test suites, where their file lies beside the repository."""

import json
from pathlib import Path

import pytest
from run_cases import KINDS, counts, main, tried

CASES = Path(__file__).parents[2] / ".." / "shared" / "data" / "scheduling" / "cases.json"


@pytest.fixture(scope="module")
def cases():
    """All cases of the file."""
    if not CASES.exists():
        pytest.skip("needs ../shared/data/scheduling/cases.json, which is not here")
    return json.loads(CASES.read_text())["cases"]


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("fair_share_division", 1.0),
        ("min_runtime_resolution", 1.0),
        ("group_maxmin", 1.0),
        ("dominant_share", 0.9),
        ("schedule", 0.95),
        ("fair_preemption", 0.9),
    ],
)
def test_enough_cases_of_kind_pass(cases, kind, least):
    """As many as docs/scheduling.md says; the message lists those that differ."""
    results = [tried(case) for case in cases if case["kind"] == kind]
    count = counts(results)[kind]
    assert count["passed"] >= least * count["total"], results


@pytest.mark.parametrize("kind", ["usage_priority", "trace_replay_published"])
def test_rules_we_lack_are_named(cases, kind):
    """What does not apply is counted as such and says why."""
    results = [tried(case) for case in cases if case["kind"] == kind]
    assert all(one.outcome.text for one in results)
    assert counts(results)[kind] == {"passed": 0, "total": 1, "not_applicable": 1}


def test_unknown_kind_differs_aloud(tmp_path, capsys):
    """A kind without a module is reported, and counted as one that differs."""
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [{"id": "x-1", "kind": "lottery", "summary": "dice"}]}))
    assert main([str(file)]) == 0
    *told, last = capsys.readouterr().out.splitlines()
    assert "x-1 (lottery) differs: dice" in told[0]
    assert json.loads(last) == {"lottery": {"passed": 0, "total": 1}}


def test_broken_case_stops_no_other(tmp_path, capsys):
    """With --json there is one line, whatever a case lacks."""
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [{"id": "y", "kind": kind} for kind in KINDS[:1] * 2]}))
    assert main([str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {KINDS[0]: {"passed": 0, "total": 2}}
