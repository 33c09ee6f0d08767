"""How every benchmark reports: medians in a table, and with `--json` a last line of figures.

Used by each script in this folder. It measures nothing itself.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_LONGEST_S = 590


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The bound a figure has to keep, and which way is better."""

    bound: float
    at_most: bool = True

    def kept_by(self, value: float) -> bool:
        """Whether `value` is on the right side."""
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One named number, what it means, and its target if it has one. None was not measured."""

    key: str
    meaning: str
    value: float | None
    target: Target | None = None

    @property
    def verdict(self) -> str:
        """Beside the target: kept, missed, or why neither."""
        if self.value is None:
            return "not measured"
        if self.target is None:
            return ""
        return "kept" if self.target.kept_by(self.value) else "MISSED"


def options(
    description: str, *, more: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """The command line every benchmark has: `--json`, and what `more` adds.

    From here on a polite end, and ten minutes, interrupt it like Ctrl-C: what it started is ended.
    """
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.default_int_handler)
    signal.alarm(_LONGEST_S)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="end with one line of named figures")
    if more is not None:
        more(parser)
    return parser.parse_args()


def median(values: Sequence[float]) -> float | None:
    """The middle one; None of nothing."""
    return statistics.median(values) if values else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """How `part` stands to `whole`; None unless both were measured."""
    return part / whole if part is not None and whole else None


def spread(values: Sequence[float], *, unit: float = 1e3) -> tuple[str, str, str, str]:
    """Count, median, fastest and slowest of some times, in milliseconds unless told."""
    if not values:
        return ("0", "-", "-", "-")
    numbers = (statistics.median(values), min(values), max(values))
    return (str(len(values)), *(f"{number * unit:.0f}" for number in numbers))


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their heads, the first column left, the others right."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    print(f"\n{title}")
    for row in cells:
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(f"  {'  '.join((first, *others))}".rstrip())


def machine() -> str:
    """The machine in one line, for figures mean nothing without it."""
    model = next(
        (line.split(":")[1].strip() for line in _read("/proc/cpuinfo") if "model name" in line), ""
    )
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores"
        f"{f' ({model})' if model else ''}, load {load:.1f}, Python {platform.python_version()}"
    )


def finish(figures: Sequence[Figure], *, as_json: bool) -> None:
    """Print the figures beside their targets and, if asked, once more as one line of JSON."""
    rows = [
        (f.meaning, "-" if f.value is None else f"{f.value:.4g}", f.target or "", f.verdict)
        for f in figures
    ]
    table("Figures", ("figure", "value", "target", ""), rows)
    print(f"\n{machine()}")
    if as_json:
        print(json.dumps(named(figures)))
    sys.stdout.flush()


def named(figures: Sequence[Figure]) -> Mapping[str, float | None]:
    """The figures by key, as the last line has them."""
    return {f.key: None if f.value is None else round(f.value, 5) for f in figures}


def note(sentence: str) -> None:
    """Say at once what is going on, or what is left out and why."""
    print(sentence, flush=True)


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a kernel file, read once
            return file.read().splitlines()
    except OSError:
        return []
