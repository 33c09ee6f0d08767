"""The report on usage as a picture: one bar a row, in SVG and nothing else. Pure."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from jupyter_gpupool.protocol.usage import UsageRowView, UsageView

_COLOURS = {"busy": "#2a7f62", "idle": "#d98c2b", "unknown": "#b8bcc2", "won back": "#5b8fd6"}
"""Told apart in grey and by most who see few colours."""
_LABELS, _BARS, _ROW, _TOP, _RIGHT = 180, 480, 26, 64, 90
_LONGEST_LABEL = 26


def usage_svg(view: "UsageView", labels: Sequence[str]) -> str:
    """A bar for each row: what was held by how it was used, and beyond that what was won back."""
    width, height = _LABELS + _BARS + _RIGHT, _TOP + _ROW * max(1, len(view.rows)) + 12
    longest = max((row.held + row.won_back for row in view.rows), default=0.0) or 1.0
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f"<title>{escape(_title(view))}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="20" font-size="14">{escape(_title(view))}</text>',
        *_legend(),
    ]
    for number, (row, label) in enumerate(zip(view.rows, labels, strict=True)):
        parts += _bar(row, label, _TOP + number * _ROW, _BARS / longest)
    return "\n".join([*parts, "</svg>", ""])


def _title(view: "UsageView") -> str:
    return f"GPU-hours, {view.since:%Y-%m-%d} to {view.until:%Y-%m-%d} ({view.zone})"


def _legend() -> Iterator[str]:
    for number, (name, colour) in enumerate(_COLOURS.items()):
        x = _LABELS + number * 110
        yield f'<rect x="{x}" y="36" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 17}" y="46">{name}</text>'


def _bar(row: "UsageRowView", label: str, y: int, scale: float) -> Iterator[str]:
    short = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
    yield f'<text x="{_LABELS - 8}" y="{y + 14}" text-anchor="end">{escape(short)}</text>'
    x = float(_LABELS)
    amounts = (row.busy, row.idle, row.unknown, row.won_back)
    for (name, colour), hours in zip(_COLOURS.items(), amounts, strict=True):
        length = hours * scale
        if length > 0:
            told = escape(f"{label}: {hours:.2f} h {name}")
            yield (
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="18" fill="{colour}">'
                f"<title>{told}</title></rect>"
            )
        x += length
    yield f'<text x="{x + 6:.1f}" y="{y + 14}">{row.held:.1f} h</text>'
