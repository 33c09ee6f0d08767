"""A claim's certificate in the hands of Dask."""

import ssl
import tempfile

import pytest

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.notebook.security import ClaimSecurity
from jupyter_gpupool.protocol.api import ConnectionView

pytestmark = pytest.mark.e2e


@pytest.fixture
def connection(pool: Pool) -> ConnectionView:
    """What the manager gives to a claim's owner."""
    with claim(1, pool=pool) as cluster:
        return pool.background.run(lambda _say: pool.client.connection(cluster.claim_id))


def test_private_key_is_written_to_no_disk(
    connection: ConnectionView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for the moment that Python needs a file's name."""
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    made = ClaimSecurity(connection).get_connection_args("client")["ssl_context"]
    assert made.verify_mode is ssl.CERT_REQUIRED


def test_context_is_made_once(connection: ConnectionView) -> None:
    """However many connections there are."""
    security = ClaimSecurity(connection)
    first, second = (security.get_connection_args("client") for _ in range(2))
    assert first["ssl_context"] is second["ssl_context"]
    assert connection.key not in repr(security)
