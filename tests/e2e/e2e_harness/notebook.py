"""A notebook that is executed cell by cell, with a kernel of its own.

Used by the scenarios of notebooks. nbclient executes; a cell's output is what a reader would see.
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import nbformat
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

_CELL_WITHIN_S = 90


class Notebook:
    """One notebook and its kernel."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._document = nbformat.v4.new_notebook()
        self._environment = dict(environment)
        self._client = NotebookClient(
            self._document,
            kernel_name="python3",
            timeout=_CELL_WITHIN_S,
            resources={"metadata": {"path": str(folder)}},
        )

    def __enter__(self) -> Self:
        self._client.create_kernel_manager()
        self._client.start_new_kernel(env=self._environment)
        self._client.start_new_kernel_client()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.kc.stop_channels()
        run_sync(self._client.km.shutdown_kernel)(now=True)

    def run(self, code: str) -> str:
        """Execute a cell and return all it showed as text.

        Raises:
            AssertionError: If it raised; the message is what the notebook shows.
        """
        cell = nbformat.v4.new_code_cell(code)
        self._document.cells.append(cell)
        try:
            self._client.execute_cell(cell, len(self._document.cells) - 1)
        except CellExecutionError as error:
            raise AssertionError(str(error)) from None
        return "".join(_text(output) for output in cell.outputs)

    def run_failing(self, code: str) -> str:
        """Execute a cell that raises, or that says on stderr what is wrong, and return that."""
        try:
            return self.run(code)
        except AssertionError as error:
            return str(error)

    def restart(self) -> None:
        """Restart the kernel, as the button does: it is asked to end, and gets a moment."""
        self._client.kc.stop_channels()
        run_sync(self._client.km.restart_kernel)(env=self._environment)
        self._client.start_new_kernel_client()

    def kill(self) -> None:
        """End the kernel as the kernel of an operating system does that runs out of memory."""
        pid = int(self.run("import os; print(os.getpid())"))
        os.kill(pid, signal.SIGKILL)


def _text(output: nbformat.NotebookNode) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data.get("text/plain", "")) + "\n"
