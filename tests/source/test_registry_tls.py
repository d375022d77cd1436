from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.source.registry.confluent import ConfluentRegistry
from tests.source.http_registry import TYPES, Loopback, loopback

PASSWORD = "hunter2-key"  # noqa: S105


class Authority:
    """A certificate authority of this test run, and what it signed."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("lakeingest test authority")
        signed = self._signed(self._name, self._key.public_key(), authority=True)
        self.ca = _written(folder / "ca.pem", signed.public_bytes(serialization.Encoding.PEM))
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_name("registry"), key.public_key(), authority=False)
        self.certificate = _written(
            folder / "certificate.pem", certificate.public_bytes(serialization.Encoding.PEM)
        )
        self.key = _written(folder / "key.pem", _pem(key, serialization.NoEncryption()))
        self.locked_key = _written(
            folder / "locked.pem",
            _pem(key, serialization.BestAvailableEncryption(PASSWORD.encode())),
        )

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        loopback_address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        own_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([loopback_address]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(own_key, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey, lock: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def _written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def secure(authority: Authority, *, wants_certificate: bool = False) -> Iterator[Loopback]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.certificate, authority.key)
    if wants_certificate:
        tls.load_verify_locations(authority.ca)
        tls.verify_mode = ssl.CERT_REQUIRED
    with loopback(lambda _path: TYPES, tls) as server:
        yield server


def opened(url: str, **settings: str) -> ConfluentRegistry:
    named = {f"schema.registry.ssl.{key.replace('_', '.')}": text for key, text in settings.items()}
    return ConfluentRegistry({"schema.registry.url": url, **named}, 5, 2, pause_seconds=0.01)


def test_a_registry_with_a_certificate_of_the_named_authority_is_trusted(
    authority: Authority,
) -> None:
    with (
        secure(authority) as server,
        closing(opened(server.url, ca_location=authority.ca)) as registry,
    ):
        registry.check()


def test_an_unknown_authority_is_refused_at_once_and_the_key_to_name_it_is_said(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with secure(authority) as server, closing(opened(server.url)) as registry:
        with pytest.raises(UnavailableError, match=r"schema\.registry\.ssl\.ca\.location"):
            registry.check()
        assert server.paths == []
    assert "Asking again" not in caplog.text


def test_a_registry_that_wants_a_certificate_gets_it(authority: Authority) -> None:
    with secure(authority, wants_certificate=True) as server:
        own = {
            "ca_location": authority.ca,
            "certificate_location": authority.certificate,
            "key_location": authority.locked_key,
            "key_password": PASSWORD,
        }
        with closing(opened(server.url, **own)) as registry:
            registry.check()
        with (
            closing(opened(server.url, ca_location=authority.ca)) as registry,
            pytest.raises(UnavailableError),
        ):
            registry.check()


def test_the_password_of_a_key_is_not_asked_for_on_the_terminal(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = []

    def load(
        self: ssl.SSLContext, certfile: str, keyfile: str | None = None, password: str | None = None
    ) -> None:
        passwords.append(password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)
    opened("https://registry", certificate_location=authority.certificate).close()
    assert passwords == [""]  # With None OpenSSL asks whoever sits there.


@pytest.mark.parametrize("password", [{}, {"key_password": "hunter2-wrong"}])
def test_a_locked_key_without_its_password_names_the_setting(
    authority: Authority, password: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.key\.password") as error:
        opened(
            "https://registry",
            certificate_location=authority.certificate,
            key_location=authority.locked_key,
            **password,
        )
    assert "hunter2" not in str(error.value)


def test_a_file_that_is_not_there_or_no_pem_names_its_key(
    authority: Authority, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"schema\.registry\.ssl\.ca\.location: there is no"):
        opened("https://registry", ca_location=str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"schema\.registry\.ssl\.ca\.location cannot be used"):
        opened("https://registry", ca_location=_written(tmp_path / "text.pem", b"text"))
