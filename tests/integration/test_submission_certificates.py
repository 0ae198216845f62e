"""Renewed certificates of the submission server: used by new connections without a restart, if they can be used."""

import asyncio
import os
import smtplib
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
import trustme
from cryptography import x509

from postroom.compose import submission as composed
from postroom.core.tally import Tally
from postroom.operations.installation.health import machine_checks
from postroom.outbound.submission.certificates import BadCertificate, Certificates
from postroom.outbound.submission.submissions import SubmissionLimits, SubmissionOptions, Submissions
from postroom.settings.reading import load_settings
from postroom.settings.submission import SubmissionSettings
from postroom.store.engine.database import Database
from support.patience import PATIENCE_S
from support.submission import HOST, authority, client_context, connected, submission_server

CA = authority()


class Files:
    """The certificate and its key as files, which are replaced as certbot replaces them: by new links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "fullchain.pem", folder / "privkey.pem"
        self.written = 0

    def renew(self, not_after: datetime | None = None) -> int:
        """Issue a new pair. Returns the number of the certificate."""
        issued = CA.issue_cert(HOST, not_after=not_after)
        self.replace(self.key, issued.private_key_pem.bytes())
        return self.replace_certificate(issued)

    def replace_certificate(self, issued: trustme.LeafCert) -> int:
        chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
        self.replace(self.certificate, chain)
        return x509.load_pem_x509_certificate(chain).serial_number

    def replace(self, file: Path, content: bytes) -> None:
        self.written += 1
        version = self.folder / f"version-{self.written}.pem"
        version.write_bytes(content)
        link = self.folder / "link"
        link.symlink_to(version)
        link.replace(file)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def client(*, verified: bool = True) -> ssl.SSLContext:
    context = client_context()
    if not verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def served_at(port: int, name: str | None = HOST) -> int:
    """The number of the certificate on the encrypted port."""
    context = client(verified=name is not None)
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=name) as encrypted,
    ):
        return _number(encrypted)


def served_by_starttls(port: int) -> int:
    with smtplib.SMTP("127.0.0.1", port, "client.example", PATIENCE_S) as server:
        vars(server)["_host"] = HOST
        server.starttls(context=client())
        assert isinstance(server.sock, ssl.SSLSocket)
        return _number(server.sock)


def _number(encrypted: ssl.SSLSocket) -> int:
    found = encrypted.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


async def test_new_connections_get_the_renewed_certificate_and_open_ones_go_on(sqlite: Database, files: Files) -> None:
    first = files.renew()
    pair = Certificates(files.certificate, files.key)
    async with submission_server(sqlite, context=pair.context) as server:
        assert await asyncio.to_thread(served_at, server.tls_port) == first
        async with connected(server.tls_port, tls=True) as before:
            second = files.renew()
            assert await asyncio.to_thread(pair.refresh)
            assert second != first
            assert await asyncio.to_thread(served_at, server.tls_port) == second
            assert await asyncio.to_thread(served_at, server.tls_port, None) == second
            assert await asyncio.to_thread(served_by_starttls, server.port) == second
            assert (await before.ask("NOOP")).startswith("250")
    assert not pair.refresh()


async def test_a_pair_that_cannot_be_used_changes_nothing_until_it_can(sqlite: Database, files: Files) -> None:
    first = files.renew()
    pair = Certificates(files.certificate, files.key)
    other = CA.issue_cert(HOST)
    past = datetime.now(UTC) - timedelta(days=1)
    async with submission_server(sqlite, context=pair.context) as server:
        with structlog.testing.capture_logs() as logged:
            number = files.replace_certificate(other)  # its key comes later
            assert not pair.refresh()
            assert not pair.refresh()
            assert await asyncio.to_thread(served_at, server.tls_port) == first
            files.replace(files.certificate, b"-----BEGIN CERTIFICATE-----\nrubbish")
            assert not pair.refresh()
            files.certificate.unlink()
            assert not pair.refresh()
            files.renew(not_after=past)
            assert not pair.refresh()
            assert await asyncio.to_thread(served_at, server.tls_port) == first
        assert [each["event"] for each in logged] == ["submission.certificate_kept"] * 4
        assert "BEGIN" not in str(logged)
        files.replace(files.key, other.private_key_pem.bytes())
        assert files.replace_certificate(other) == number
        assert pair.refresh()
        assert await asyncio.to_thread(served_at, server.tls_port) == number


async def test_a_file_that_is_written_in_place_is_noticed(files: Files) -> None:
    files.renew()
    pair = Certificates(files.certificate, files.key)
    issued = CA.issue_cert(HOST)
    files.key.write_bytes(issued.private_key_pem.bytes())
    files.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    os.utime(files.key, (1, 1))  # the clock of a file system may be slower than a test
    assert pair.refresh()


async def test_the_composed_server_notices_by_itself(
    sqlite: Database, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = files.renew()
    monkeypatch.setattr(composed, "LOOK_EVERY_S", 0.01)
    given = SubmissionSettings.model_validate(
        {"port": 0, "tls_port": 0, "certificate_file": str(files.certificate), "key_file": str(files.key)}
    )
    submissions = Submissions(sqlite, SubmissionOptions(HOST, SubmissionLimits()))
    async with composed.running_submission(given, submissions, Tally()) as (_, encrypted), asyncio.timeout(PATIENCE_S):
        port = int(encrypted.rpartition(":")[2])
        assert await asyncio.to_thread(served_at, port) == first
        second = files.renew()
        while await asyncio.to_thread(served_at, port) != second:
            pass


def test_a_key_with_a_password_is_refused_and_not_asked_for(files: Files) -> None:
    files.renew()
    plain = files.key.read_bytes()
    sealed = plain.replace(
        b"-----\n", b"-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n", 1
    )
    files.replace(files.key, sealed)
    with pytest.raises(BadCertificate):
        Certificates(files.certificate, files.key)
    os.truncate(files.key, 0)
    with pytest.raises(BadCertificate):
        Certificates(files.certificate, files.key)


def verdict(files: Files) -> str:
    overrides = {"submission.certificate_file": str(files.certificate), "submission.key_file": str(files.key)}
    settings = load_settings({"data_dir": files.folder, **overrides}, environ={}, cwd=files.folder)
    (found,) = [each for each in machine_checks(settings, None) if each.name == "submission certificate"]
    return found.verdict


def test_doctor_looks_at_the_certificate(files: Files) -> None:
    now = datetime.now(UTC)
    verdicts: list[str] = []
    for days in (100, 3, -1):
        files.renew(not_after=now + timedelta(days=days))
        verdicts.append(verdict(files))
    files.replace_certificate(CA.issue_cert(HOST))
    assert [*verdicts, verdict(files)] == ["ok", "warn", "fail", "fail"]
