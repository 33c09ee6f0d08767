"""Which kernel this is, as the pool is told it, and whether it is about to come back.

Called by `attachment`, `which` and `giving_back`. Jupyter's id of a kernel outlives its restart; a
plain script is known by its process.
"""

import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jupyter_gpupool.client.bodies import make
from jupyter_gpupool.client.this_host import ThisHost, started_at
from jupyter_gpupool.protocol.using import KernelBody

_SHOWN = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisKernel:
    """The process we are.

    Attributes:
        id: Jupyter's for a kernel, also after a restart; "pid-…" for a script.
        name: The notebook's path, or the script's; "" if unknown.
    """

    id: str
    name: str
    pid: int
    started: int
    host: ThisHost

    def body(self) -> KernelBody:
        """The same, as it is sent."""
        return make(
            KernelBody,
            host=self.host.mark,
            boot_id=self.host.boot_id,
            pid=self.pid,
            started=self.started,
            name=self.name,
        )


def this_kernel() -> ThisKernel:
    """Us, in a child after a fork as well."""
    return _read(os.getpid())


@lru_cache(maxsize=1)
def _read(pid: int) -> ThisKernel:
    started = started_at(pid) or 0
    return ThisKernel(
        id=_jupyters_id() or f"pid-{pid}-{started}",
        name=_shown(os.environ.get("JPY_SESSION_NAME") or _script()),
        pid=pid,
        started=started,
        host=ThisHost.read(),
    )


def is_restarting() -> bool:
    """Whether this is a kernel that ends because it is being restarted."""
    app = _kernel_app()
    # The kernel's last message says it, and no public attribute does.
    message = getattr(getattr(app, "kernel", None), "_shutdown_message", None)
    return bool(message and message["content"].get("restart"))


def is_kernel() -> bool:
    """Whether this process is a Jupyter kernel."""
    return _kernel_app() is not None


def _kernel_app() -> Any:
    # Never imported for this: a script has no use for it, and a kernel has it already.
    module = sys.modules.get("ipykernel.kernelapp")
    app = getattr(module, "IPKernelApp", None)
    return app.instance() if app is not None and app.initialized() else None


def _jupyters_id() -> str:
    file = getattr(_kernel_app(), "connection_file", "")
    return _shown(Path(file).stem.removeprefix("kernel-")) if file else ""


def _script() -> str:
    return str(getattr(sys.modules.get("__main__"), "__file__", None) or "")


def _shown(text: str) -> str:
    # The end of a path tells more than its beginning. Foreign bytes cannot be sent.
    whole = text.encode(errors="replace").decode()
    return _CONTROL.sub("?", whole)[-_SHOWN:]
