"""A value as a notebook displays it, made where the value is. On workers only, without IPython."""

import base64
from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 1_000_000
_METHODS: Mapping[str, str] = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
}


def shown(value: object) -> Mapping[str, str]:
    """A value by MIME type; nothing for None, as in any cell."""
    if value is None:
        return {}
    rich = {mime: _rich(value, method) for mime, method in _METHODS.items()}
    return {"text/plain": _cut(repr(value)), **{mime: text for mime, text in rich.items() if text}}


def _rich(value: Any, method: str) -> str:
    # A class has the method too, but it is meant for its instances.
    made = None if isinstance(value, type) else getattr(value, method, None)
    said = made() if callable(made) else None
    if isinstance(said, bytes):
        return base64.b64encode(said).decode()
    return said if isinstance(said, str) else ""


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
