"""HTML for a notebook's output: everything escaped, JupyterLab's own colours, nothing else.

Called by `card`, `listing` and `answers`. Pure. What is shown stays readable where those colours
are unknown, as in an exported page.
"""

from collections.abc import Iterable, Sequence
from html import escape

_FONT = (
    "color:var(--jp-ui-font-color1,inherit);"
    "font-family:var(--jp-ui-font-family,sans-serif);font-size:var(--jp-ui-font-size1,13px)"
)
_RULE = "1px solid var(--jp-border-color2,currentColor)"
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"
_DIM = "color:var(--jp-ui-font-color2,inherit)"


def element(tag: str, inside: str, style: str = "", **attributes: str) -> str:
    """One element around what is HTML already; its attributes are text."""
    given = {**({"style": style} if style else {}), **attributes}
    written = "".join(f' {name.replace("_", "-")}="{escape(text)}"' for name, text in given.items())
    return f"<{tag}{written}>{inside}</{tag}>"


def text(value: str, *, dim: bool = False, bold: bool = False) -> str:
    """Text that may hold anything."""
    style = ";".join(part for part in (_DIM * dim, "font-weight:600" * bold) if part)
    return element("span", escape(value), style) if style else escape(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts; without columns, it has no head."""
    head = "".join(element("th", escape(name), f"{_CELL};{_DIM}") for name in columns)
    body = "".join(
        element("tr", "".join(element("td", escape(cell), _CELL) for cell in row)) for row in rows
    )
    inside = (element("thead", element("tr", head)) if columns else "") + element("tbody", body)
    return element("table", inside, f"border-collapse:collapse;{_FONT}")


def lines(rows: Iterable[str]) -> str:
    """Lines of a log, as they are."""
    style = (
        "margin:0;padding:4px 0;white-space:pre-wrap;font-family:var(--jp-code-font-family,"
        "monospace);font-size:var(--jp-code-font-size,13px)"
    )
    return element("pre", escape("\n".join(rows)), style)


def block(*parts: str) -> str:
    """Parts below each other."""
    return element("div", "".join(parts), _FONT)


def card(head: str, body: str, foot: str, **attributes: str) -> str:
    """A framed card of three parts that are HTML already; an empty one is left out."""
    frame = f"max-width:740px;border:{_RULE};border-radius:var(--jp-border-radius,2px);{_FONT}"
    below = f"padding:8px 12px;border-top:{_RULE}"
    parts = (
        element("header", head, "display:flex;gap:8px;align-items:baseline;padding:8px 12px"),
        element("div", body, below) if body else "",
        element("footer", foot, f"{below};{_DIM}") if foot else "",
    )
    return element("article", "".join(parts), frame, **attributes)
