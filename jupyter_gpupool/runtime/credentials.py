"""A claim's certificates as TLS contexts, without a key ever touching a disk.

Called by `scheduler`, `worker` and `dashboard`. distributed writes PEM texts to temporary files in
order to load them; a kill in between would leave a key behind, so ours go through memory files.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed.security import Security

from jupyter_gpupool.protocol.launch import Tls


class ClaimSecurity(Security):
    """distributed's Security with one identity for all roles, loaded from memory, once."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._contexts: dict[ssl.Purpose, ssl.SSLContext] = {}
        roles = ("scheduler", "worker", "client")
        certificates = {f"tls_{role}_cert": tls.certificate for role in roles}
        keys = {f"tls_{role}_key": tls.key for role in roles}
        super().__init__(  # type: ignore[no-untyped-call]  # distributed's has no types
            require_encryption=True, tls_ca_file=tls.ca, **certificates, **keys
        )

    def _get_tls_context(self, tls: dict[str, Any], purpose: ssl.Purpose) -> ssl.SSLContext:
        """The context for one direction; both check the other side against the claim's CA."""
        del tls  # one identity: what distributed picked for a role is what we hold
        if purpose not in self._contexts:
            self._contexts[purpose] = _mutual_context(self._tls, purpose)
        return self._contexts[purpose]


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context for browsers and proxies: they have no certificate, and know a secret instead."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_identity(context, tls)
    return context


def _mutual_context(tls: Tls, purpose: ssl.Purpose) -> ssl.SSLContext:
    context = ssl.create_default_context(purpose=purpose, cadata=tls.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The claim's own CA signs its few parties only, and they are reached by address.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    _load_identity(context, tls)
    return context


def _load_identity(context: ssl.SSLContext, tls: Tls) -> None:
    with _memory_file(f"{tls.certificate}\n{tls.key}") as path:
        context.load_cert_chain(path)


@contextmanager
def _memory_file(text: str) -> Iterator[str]:
    descriptor = os.memfd_create("gpupool-identity", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
