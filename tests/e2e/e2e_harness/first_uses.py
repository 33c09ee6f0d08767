"""Twenty first uses at the same moment, from three Jupyter servers and from scripts.

Run by `test_first_uses` as a program of its own, in a mount namespace in which the embedded pool's
state is its own, for a root user's is always in the same place. Prints one JSON document: what each
use was answered, by how many managers, and whether anything is left once nobody uses the pool.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))
from e2e_harness.jupyter import jupyter_server

SERVERS, USES_A_SERVER, SCRIPTS = 3, 3, 11
_IDLE_S = 5
_USED_EVERY_S = 0.5
_GONE_WITHIN_S = 90
_SCRIPT = "import jupyter_gpupool as gpupool; print(gpupool.status().devices)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
        environment = _environment(Path(folder))
        browsers = [
            servers.enter_context(
                jupyter_server(Path(sys.executable), _made(Path(folder, f"jupyter-{n}")), own)
            )
            for n, own in enumerate([environment] * SERVERS)
        ]
        answers = _use_all_at_once(browsers, environment)
        managers = len(_pool_processes("jupyter_gpupool.manager"))
        servers.close()
        print(json.dumps({"answers": answers, "managers": managers, "left": _left()}))


def _environment(folder: Path) -> dict[str, str]:
    config = _made(folder / "config")
    settings = {"ManagerApp": {"idle_exit_after_s": _IDLE_S, "simulated": 1}}
    (config / "jupyter_gpupool_config.json").write_text(json.dumps(settings))
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GPUPOOL_")}
    return kept | {
        "JUPYTER_CONFIG_PATH": str(config),
        "XDG_STATE_HOME": str(folder / "state"),
        "JUPYTER_RUNTIME_DIR": str(_made(folder / "run")),
    }


def _use_all_at_once(browsers: Sequence[httpx.Client], environment: dict[str, str]) -> list[Any]:
    def ask(browser: httpx.Client) -> int:
        return browser.get("/gpupool/api/v1/status").status_code

    def run(_: int) -> int:
        done = subprocess.run([sys.executable, "-c", _SCRIPT], env=environment, check=False)
        return done.returncode

    with ThreadPoolExecutor(SERVERS * USES_A_SERVER + SCRIPTS) as pool:
        asked = [pool.submit(ask, browser) for browser in browsers for _ in range(USES_A_SERVER)]
        ran = [pool.submit(run, number) for number in range(SCRIPTS)]
        wait(asked, return_when=FIRST_COMPLETED)
        # On a busy machine the last script comes late: until then the pool is not unused.
        while wait((*asked, *ran), timeout=_USED_EVERY_S).not_done:
            ask(browsers[0])
        return [each.result() for each in (*asked, *ran)]


def _left() -> list[str]:
    """What of the pool still runs long after it was used last."""
    deadline = time.monotonic() + _GONE_WITHIN_S
    while left := _pool_processes("jupyter_gpupool."):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.2)
    return []


def _pool_processes(module: str) -> list[str]:
    """Processes of this mount namespace that run this module."""
    ours = str(Path("/proc/self/ns/mnt").readlink())
    return [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["pid", "cmdline"])
        if module in " ".join(process.info["cmdline"] or ()) and _namespace(process.pid) == ours
    ]


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
