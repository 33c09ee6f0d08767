"""The claim's own certificate, as distributed wants it; TLS contexts are made once, not each time.

Called by `greeting`. Making a context takes some 3 ms, and Dask asks for one at each connection
object it makes; it would also write the private key to a temporary folder on disk for it.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from distributed.security import Security

from jupyter_gpupool.protocol.api import ConnectionView


class ClaimSecurity(Security):
    """Mutual TLS within one claim: nobody without its certificate is let in, or trusted."""

    def __init__(self, connection: ConnectionView) -> None:
        super().__init__(
            tls_ca_file=connection.ca,
            tls_client_cert=connection.certificate,
            tls_client_key=connection.key,
            require_encryption=True,
        )
        self._made: dict[str, dict[str, Any]] = {}

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """Arguments of a connection, its TLS context shared by all of this role."""
        if role not in self._made:
            self._made[role] = super().get_connection_args(role)
        return dict(self._made[role])

    def _get_tls_context(self, tls: dict[str, Any], purpose: Any) -> Any:
        with _in_memory(f"{tls['cert']}\n{tls['key']}") as path:
            in_memory = {} if path is None else {"cert": path, "key": path}
            return super()._get_tls_context({**tls, **in_memory}, purpose)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[str | None]:
    """A path under which this process alone reads a secret that is on no disk; None off Linux."""
    if not hasattr(os, "memfd_create"):
        yield None
        return
    with os.fdopen(os.memfd_create("gpupool-claim", os.MFD_CLOEXEC), "w") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
