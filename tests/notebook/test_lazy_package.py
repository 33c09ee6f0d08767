"""`import jupyter_gpupool` costs next to nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import jupyter_gpupool

_SCRIPT = """
import sys
import jupyter_gpupool
print(sorted({"distributed", "httpx", "pydantic", "websockets"} & set(sys.modules)))
"""


def test_import_is_light() -> None:
    """No Dask, no HTTP, no pydantic; tests/benchmarks/notebook.py times it."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_every_public_name_can_be_had() -> None:
    """Lazily, and each is what it says."""
    for name in jupyter_gpupool.__all__:
        assert getattr(jupyter_gpupool, name).__name__ == name


def test_stub_lists_the_same_names() -> None:
    """What type checkers see is what there is."""
    stub = ast.parse(Path(jupyter_gpupool.__file__).with_suffix(".pyi").read_text())
    listed = next(
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert listed == sorted(jupyter_gpupool.__all__)
