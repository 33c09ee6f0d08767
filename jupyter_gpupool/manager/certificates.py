"""A claim's own certificate authority and its three parties, made when the claim is granted.

Called by `service/planning.py`. The authority's key signs the three and is then thrown away, so
nobody, the manager included, can make a fourth party of a claim.
"""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = timedelta(days=1)
_MARGIN = timedelta(days=2)
_PARTIES = ("scheduler", "worker", "client")
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """One party's certificate and key, as PEM texts."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSecrets:
    """All that must stay within one claim.

    Attributes:
        dashboard_prefix: Secret first part of every path the scheduler's HTTP server answers.
    """

    ca: str = field(repr=False)
    scheduler: Party = field(repr=False)
    worker: Party = field(repr=False)
    client: Party = field(repr=False)
    dashboard_prefix: str = field(repr=False)


def make_secrets(now: datetime, longest_life: timedelta) -> ClaimSecrets:
    """Make a claim's authority and parties, valid for its longest life and two days more."""
    # A host whose clock is behind must accept them too.
    since, until = now - _BACKDATED, now + longest_life + _MARGIN
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key, since, until)
    parties = {name: _party(name, authority, authority_key) for name in _PARTIES}
    return ClaimSecrets(ca=_text(authority), **parties, dashboard_prefix=secrets.token_hex(16))


def _authority(
    key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime
) -> x509.Certificate:
    name = _name("gpupool claim")
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=since.astimezone(UTC).replace(tzinfo=None),
        not_valid_after=until.astimezone(UTC).replace(tzinfo=None),
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(own, critical=False).sign(key, hashes.SHA256())


def _party(
    role: str, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> Party:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(
        issuer_name=authority.subject,
        subject_name=_name(f"gpupool {role}"),
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=authority.not_valid_before_utc.replace(tzinfo=None),
        not_valid_after=authority.not_valid_after_utc.replace(tzinfo=None),
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    # Workers and schedulers connect to each other, so each is a server and a client.
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    signed = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(both, critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(role)]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Party(certificate=_text(signed), key=_key_text(key))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(_PEM).decode()


def _key_text(key: ec.EllipticCurvePrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain).decode()
