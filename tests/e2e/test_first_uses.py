"""Many first uses at once, from Jupyter servers and scripts of one user: one pool, once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_DRIVER = Path(__file__).parent / "e2e_harness" / "first_uses.py"
_OWN_STATE = "mkdir -p /var/lib/gpupool && mount -t tmpfs none /var/lib/gpupool && exec {}"


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"),
    reason="a mount namespace of its own takes root and unshare",
)
def test_pool_starts_once_and_ends_once(tmp_path: Path) -> None:
    """Twenty uses at the same moment are all answered, by one manager, and then nothing is left."""
    command = f"{sys.executable} {_DRIVER}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", _OWN_STATE.format(command)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["answers"] == [200] * 9 + [0] * 11
    assert (told["managers"], told["left"]) == (1, [])
