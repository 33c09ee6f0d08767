"""What a zygote's interpreter is told to run, and what it sees of the agent's environment.

Called by `zygotes`.
"""

from collections.abc import Mapping
from pathlib import Path

_ZYGOTE = "jupyter_gpupool.runtime.zygote"
_SECRET = "GPUPOOL_TOKEN"  # noqa: S105 - the name of it
LIBRARIES = "LD_LIBRARY_PATH"
_SHARED = ("PATH", "LANG", "LC_", LIBRARIES, "TZ", "TMPDIR", "CUDA", "NVIDIA", "GPUPOOL_", "DASK_")
"""What of root's environment users' processes may see, by prefix."""
_OF_ONE_PYTHON = ("PYTHONHOME", "PYTHONPATH", "GPUPOOL_PRE_IMPORT")
"""What the agent's own environment loads, and another one may not have."""
NO_HOME = {"HOME": "/nonexistent"}
"""For a zygote of many users: root's own configuration is for none of them."""
TUNED = {
    # As dask's own Nanny starts its workers; read by the C library when a process starts.
    "MALLOC_TRIM_THRESHOLD_": "65536",
    # pyarrow's allocator would start a thread, and a process with threads cannot be forked safely.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def program(package_folder: Path | None) -> tuple[str, str]:
    """How an interpreter is told to be a zygote."""
    if package_folder is None:
        return "-m", _ZYGOTE
    # Only while our package is found: nothing else may ever come from there.
    return "-c", (
        f"import sys; sys.path.insert(0, {str(package_folder)!r});"
        f" from {_ZYGOTE} import main; sys.path.pop(0); sys.exit(main(sys.argv))"
    )


def environ_for(environ: Mapping[str, str], *, shared: bool, is_own: bool) -> dict[str, str]:
    """What of the agent's own a zygote sees.

    Args:
        environ: The agent's.
        shared: It is root's, and more than its own user's processes may see it.
        is_own: The zygote runs in the agent's own environment.
    """
    left_out = (_SECRET,) if is_own else (_SECRET, *_OF_ONE_PYTHON)
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(left_out) and (not shared or name.startswith(_SHARED))
    }
