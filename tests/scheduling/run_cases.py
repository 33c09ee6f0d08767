"""Try decisions of other schedulers' test suites on ours: `run_cases.py FILE [--json]`.

Prints each case that differs and each that does not apply, with the reason, and ends with one line
of counts by kind. One module of `cases/` per kind translates a case to our types and compares.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cases.outcome import PASSED, Outcome, Verdict

KINDS = (
    "fair_share_division",
    "schedule",
    "fair_preemption",
    "dominant_share",
    "group_maxmin",
    "backfill",
    "usage_priority",
    "min_runtime_resolution",
    "trace_replay_published",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One case and what became of it."""

    id: str
    kind: str
    summary: str
    outcome: Outcome


def tried(case: Mapping[str, Any]) -> Tried:
    """Try one case; whatever goes wrong is a difference of that case and stops no other."""
    kind = str(case.get("kind"))
    return Tried(
        id=str(case.get("id")),
        kind=kind,
        summary=str(case.get("summary", "")),
        outcome=_outcome(kind, case),
    )


def _outcome(kind: str, case: Mapping[str, Any]) -> Outcome:
    if kind not in KINDS:
        return Outcome(Verdict.DIFFERS, "no module of ours knows this kind")
    try:
        found = import_module(f"cases.{kind}").run(case)
    except Exception as error:  # noqa: BLE001 - a case that breaks us differs, the next is tried
        return Outcome(Verdict.DIFFERS, f"{type(error).__name__}: {error}")
    if isinstance(found, Outcome):
        return found
    return Outcome(Verdict.DIFFERS, "; ".join(found)) if found else PASSED


def counts(all_tried: Iterable[Tried]) -> dict[str, dict[str, int]]:
    """Count by kind; what does not apply is counted, and named apart."""
    by_kind: dict[str, dict[str, int]] = {}
    for one in all_tried:
        count = by_kind.setdefault(one.kind, {"passed": 0, "total": 0})
        count["total"] += 1
        count["passed"] += one.outcome.verdict is Verdict.PASSED
        if one.outcome.verdict is Verdict.NOT_APPLICABLE:
            count["not_applicable"] = count.get("not_applicable", 0) + 1
    return by_kind


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a file of cases; exits 0 once all were tried, for a difference may be wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="a file in the format of cases.json")
    parser.add_argument("--json", action="store_true", help="print the counts alone")
    options = parser.parse_args(arguments)
    results = [tried(case) for case in json.loads(options.file.read_text())["cases"]]
    for one in results if not options.json else ():
        if one.outcome is not PASSED:
            print(f"{one.id} ({one.kind}) {one.outcome.verdict}: {one.summary}")
            print(f"    {one.outcome.text}")
    print(json.dumps(counts(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
