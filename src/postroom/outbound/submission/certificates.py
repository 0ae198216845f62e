"""The certificate of a server, which is read again when its files have changed.

New connections get the pair that was read last; those that are open keep theirs. Files that are being replaced may not
belong together for a moment, so a pair that cannot be used changes nothing and is tried again.
"""

import asyncio
import os
import ssl
from datetime import datetime
from pathlib import Path

import structlog
from cryptography import x509

from postroom.core.errors import PostroomError
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

LOOK_EVERY_S = 30.0

_Files = tuple[tuple[int, ...], ...]


class BadCertificate(PostroomError):
    """The certificate and its key cannot be used. The message says why, without anything from the files."""


def load_pair(certificate: Path, key: Path) -> tuple[ssl.SSLContext, datetime, datetime]:
    """A context with the pair, and between which times the certificate is valid. Raises BadCertificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # With an empty password, since OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
        leaf = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    except ssl.SSLError as error:
        raise BadCertificate(f"they are no PEM files that belong together ({error.reason or 'unreadable'})") from None
    except OSError as error:
        raise BadCertificate(error.strerror or type(error).__name__) from None
    except ValueError:
        raise BadCertificate("the certificate cannot be read") from None
    return context, leaf.not_valid_before_utc, leaf.not_valid_after_utc


class Certificates:
    """The pair in use. `context` is that of all connections: in each handshake it gives the newest pair."""

    def __init__(self, certificate: Path, key: Path, clock: Clock = wall_clock, what: str = "submission") -> None:
        """Raises BadCertificate. Log events are named after `what` is served.

        A certificate that has expired is served, with a warning: clients decide.
        """
        self._what = what
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._seen = self._look()
        self._refused: _Files | None = None
        self.context, _, expires_at = load_pair(certificate, key)
        self._newest = self.context
        self.context.sni_callback = self._give_newest
        if expires_at <= clock():
            log.warning(f"{what}.certificate_expired", expired_at=expires_at.isoformat())

    def refresh(self) -> bool:
        """Read the files if they have changed; return whether a new pair is in use. Call it in a thread."""
        found = self._look()
        if found == self._seen:
            return False
        try:
            context, valid_from, expires_at = load_pair(self._certificate, self._key)
            if not valid_from <= self._clock() < expires_at:
                raise BadCertificate("the new certificate has expired, or is not valid yet")
        except BadCertificate as error:
            # Tried again each time, and logged once for each change.
            if found != self._refused:
                log.warning(f"{self._what}.certificate_kept", reason=str(error))
            self._refused = found
            return False
        self._newest, self._seen, self._refused = context, found, None
        log.info(f"{self._what}.certificate_renewed", expires_at=expires_at.isoformat())
        return True

    async def refresh_forever(self, every_s: float) -> None:
        """Look at the files again and again."""
        while True:
            await asyncio.sleep(every_s)
            await asyncio.to_thread(self.refresh)

    def _look(self) -> _Files:
        """The marks by which a replaced or rewritten file is noticed. Links are followed, as certbot makes them."""
        return tuple(_appearance(each) for each in (self._certificate, self._key))

    def _give_newest(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._newest


def _appearance(file: Path) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
