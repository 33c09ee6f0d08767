"""The claim's own certificate, as distributed wants it; TLS contexts are made once, not each time.

Called by `cluster`. Making a context parses certificates and writes temporary files: some 3 ms,
and Dask asks for one at each connection object it makes.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"
