"""A claim's certificates."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from jupyter_gpupool.manager.certificates import make_secrets

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def made():
    """One claim's secrets."""
    return make_secrets(NOW, timedelta(days=30))


@pytest.mark.parametrize("role", ["scheduler", "worker", "client"])
def test_parties_are_signed_by_the_claims_authority(made, role):
    """Each is a different party of the same claim, on a curve that is quick."""
    certificate = x509.load_pem_x509_certificate(getattr(made, role).certificate.encode())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(made.ca.encode()))
    assert isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)


def test_certificates_outlive_the_longest_life(made):
    """Backdated a day for hosts whose clock is behind, and two days longer than any claim."""
    certificate = x509.load_pem_x509_certificate(made.worker.certificate.encode())
    assert certificate.not_valid_before_utc == NOW - timedelta(days=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=32)


def test_another_claims_authority_does_not_vouch(made):
    """Nobody reaches another's claim."""
    other = make_secrets(NOW, timedelta(days=30))
    certificate = x509.load_pem_x509_certificate(made.client.certificate.encode())
    with pytest.raises(Exception, match=r"^$|signature"):
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(other.ca.encode()))


def test_secrets_do_not_show_in_repr(made):
    """A log line that shows a claim's secrets by mistake shows nothing."""
    assert "PRIVATE KEY" not in repr(made)
    assert made.dashboard_prefix not in repr(made)
