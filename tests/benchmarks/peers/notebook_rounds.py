"""One thing that a kernel does with the pool, timed in a process of its own.

Started by `notebook.py` as `import`, `status COUNT` or `cold FOLDER [OPTION…]`; the last line of
its output is a JSON list of seconds.
"""

import json
import sys
import time
from pathlib import Path


def import_() -> list[float]:
    """Import the package and register its magics, as every kernel does."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415

    shell = InteractiveShell.instance()
    started_s = time.perf_counter()
    import jupyter_gpupool  # noqa: PLC0415

    jupyter_gpupool.load_ipython_extension(shell)
    return [time.perf_counter() - started_s]


def status(count: str) -> list[float]:
    """Ask a warm pool, again and again."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: PLC0415

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "jupyter_gpupool")
    shell.run_line_magic("gpupool", "status")
    seconds = []
    for _ in range(int(count)):
        started_s = time.perf_counter()
        shell.run_line_magic("gpupool", "status")
        seconds.append(time.perf_counter() - started_s)
    return seconds


def cold(folder: str, *options: str) -> list[float]:
    """From nothing to the first result, all imports included."""
    started_s = time.perf_counter()
    from distributed import Client  # noqa: PLC0415

    import jupyter_gpupool as gpupool  # noqa: PLC0415
    from jupyter_gpupool.client.embedded import EmbeddedPool  # noqa: PLC0415
    from jupyter_gpupool.client.pools import Pool  # noqa: PLC0415

    with EmbeddedPool(Path(folder), options=options) as embedded:
        assert embedded.address is not None
        pool = Pool(embedded.address)
        with gpupool.claim(1, pool=pool, quiet=True) as cluster, Client(cluster) as client:
            assert client.submit(sum, [1, 2]).result() == 3
            taken_s = time.perf_counter() - started_s
        pool.background.run(lambda _say: pool.close())
    return [taken_s]


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    timed = {"import": import_, "status": status, "cold": cold}[what](*arguments)
    print(json.dumps(timed))
