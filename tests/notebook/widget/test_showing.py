"""What a notebook keeps of a card: live in a kernel, and text and HTML everywhere."""

import json
import subprocess
import sys
from typing import Any

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.widget.showing import bundle_of, show

WIDGET = "application/vnd.jupyter.widget-view+json"


def test_without_a_kernel_a_card_is_text_and_html(a_view):
    """A terminal, a script, a page made of a notebook."""
    bundle = bundle_of(a_view(name="cells"))
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].startswith("gpupool claim cells: running")


def test_shown_in_a_terminal_it_is_the_text(a_view, capsys):
    """Nothing of the widget's is printed."""
    show(a_view(name="cells"))
    assert "gpupool claim cells: running" in capsys.readouterr().out


_NO_WIDGETS = """
import json, sys
sys.modules["anywidget"] = None
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().kernel = object()
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.notebook.widget.showing import bundle_of
print(json.dumps(sorted(bundle_of(ClaimView.model_validate_json(sys.argv[1])))))
"""


def test_kernel_without_anywidget_has_the_text(a_view):
    """It is not needed, and its absence is no error."""
    command = [sys.executable, "-c", _NO_WIDGETS, a_view().model_dump_json()]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.splitlines()[-1]) == ["text/html", "text/plain"]


_KERNEL = """
import jupyter_gpupool as gpupool
from IPython.core.interactiveshell import InteractiveShell
from jupyter_gpupool.notebook.widget.showing import bundle_of
InteractiveShell.instance().kernel = object()
cluster = gpupool.claim(1, quiet=True)
"""
_CELLS = (
    "import jupyter_gpupool as gpupool",
    "cluster = gpupool.claim(1, name='in a notebook', quiet=True)\ncluster",
    "cluster",
    "cluster.close()",
)


@pytest.mark.e2e
def test_notebook_keeps_the_live_card_and_its_fallback(
    pool: Pool, script_environment: dict[str, str]
):
    """In an executed notebook, with a real kernel: two views of one widget, and no error."""
    pytest.importorskip("anywidget", reason="needs anywidget")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    outputs = _executed(nbclient, script_environment)
    assert all(set(kept) == {WIDGET, "text/html", "text/plain"} for kept in outputs)
    one, two = (kept[WIDGET]["model_id"] for kept in outputs)
    assert one == two


@pytest.mark.e2e
def test_process_ends_although_a_card_listens(script_environment: dict[str, str]):
    """A card holds no process back."""
    script = f"{_KERNEL}\nbundle_of(cluster)\nprint(cluster.claim_id)"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=script_environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in ended.stderr


def _executed(nbclient: Any, environment: dict[str, str]) -> list[dict[str, Any]]:
    """What the cells of a notebook have shown."""
    import nbformat  # noqa: PLC0415 - comes with nbclient

    cells = [nbformat.v4.new_code_cell(source) for source in _CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.execute(env=environment)
    shown = [output for cell in notebook.cells for output in cell.outputs]
    return [dict(output.data) for output in shown if output.output_type == "display_data"]
