"""Shows a claim under a cell: live where a browser can, as text and HTML everywhere else.

Called when a cell ends with a cluster, and by whoever wants a card elsewhere. A kernel without
anywidget, a terminal, an exported or untrusted notebook all have the text.
"""

# mypy: allow-untyped-calls
# IPython types only some of what it offers.

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.notebook.card import card_html, card_text
from jupyter_gpupool.notebook.moments import here_and_now
from jupyter_gpupool.protocol.api import ClaimView

if TYPE_CHECKING:
    from jupyter_gpupool.client.pools import Pool
    from jupyter_gpupool.notebook.cluster import ClaimCluster


def show(of: "ClaimCluster | ClaimView", *, pool: "Pool | None" = None) -> None:
    """Show a claim's card here; shown again, all of them stay in step."""
    from IPython.display import display  # noqa: PLC0415 - 0.3 s that a script need not spend

    display(bundle_of(of, pool=pool), raw=True)


def bundle_of(of: "ClaimCluster | ClaimView", *, pool: "Pool | None" = None) -> dict[str, Any]:
    """What a notebook keeps of the card, richest last: text, HTML, and the live card."""
    if not isinstance(of, ClaimView) and of.view is None:
        return {"text/plain": repr(of), "text/html": of._repr_html_()}
    view = of if isinstance(of, ClaimView) else of.view
    assert view is not None, "looked at above"
    now = here_and_now()
    still = {"text/plain": card_text(view, now), "text/html": card_html(view, now)}
    return {**still, **_live(of, pool)}


def _live(of: "ClaimCluster | ClaimView", pool: "Pool | None") -> dict[str, Any]:
    if not (_is_kernel() and find_spec("anywidget") and find_spec("ipywidgets")):
        return {}
    from .widget import shown_card  # noqa: PLC0415 - 0.2 s, and only where it can be shown

    live, _metadata = shown_card(of, pool)._repr_mimebundle_() or ({}, {})
    return {kind: what for kind, what in live.items() if kind.startswith("application/")}


def _is_kernel() -> bool:
    from IPython.core.getipython import get_ipython  # noqa: PLC0415 - as above

    return getattr(get_ipython(), "kernel", None) is not None
