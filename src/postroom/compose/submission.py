"""Compose the acceptance of mail from senders: the same checks and limits over SMTP, HTTP and MCP."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from postroom.compose.switchboard import reserve_of, submissions_of
from postroom.compose.tasks import settle_memory, share_with_threads
from postroom.core.errors import SettingsError
from postroom.core.sign_in.throttle import SignInLimits
from postroom.core.tally import Gauges, Tally
from postroom.outbound.submission.certificates import LOOK_EVERY_S, BadCertificate, Certificates
from postroom.outbound.submission.logins import Logins
from postroom.outbound.submission.smtp_connection import SmtpSessionLimits
from postroom.outbound.submission.smtp_server import (
    Connections,
    Listener,
    SmtpConnectionLimits,
    local_sender,
    serving_submission,
)
from postroom.outbound.submission.smtp_session import SmtpService
from postroom.outbound.submission.submissions import Submissions
from postroom.settings.reading import Settings
from postroom.settings.submission import SubmissionSettings
from postroom.store.engine.database import Database
from postroom.system.http_server.listening import addresses_of, exposed_addresses, open_listener
from postroom.system.http_server.metrics import serving_metrics
from postroom.telemetry.exporter import exporting

MIB = 1024 * 1024

Ready = Callable[[str], None]


async def run_submission(settings: Settings, database: Database, stop: asyncio.Event, ready: Ready) -> None:
    """Run only the submission server."""
    tally = Tally()
    submissions = submissions_of(settings, database, reserve_of(settings, database), tally)
    async with (
        exporting(settings.telemetry, tally, Gauges()) as exporter,
        serving_metrics(
            settings.telemetry.listen,
            exporter.metrics_text,
            settings.web.allowed_hosts,
            allow_exposed=settings.web.allow_unprotected_bind,
        ),
        running_submission(settings.submission, submissions, tally) as addresses,
    ):
        settle_memory()
        share_with_threads()
        ready(" ".join(addresses))
        await stop.wait()


@contextlib.asynccontextmanager
async def running_submission(
    given: SubmissionSettings, submissions: Submissions, tally: Tally
) -> AsyncGenerator[list[str]]:
    """Accept mail over SMTP during the block. Yields the addresses, such as smtp://127.0.0.1:2587."""
    certificates = _certificates(given)
    context = None if certificates is None else certificates.context
    listeners = listeners_of(given, context)
    connections = Connections(
        SmtpConnectionLimits(given.max_connections, given.max_connections_per_address, given.max_memory_mib * MIB),
        tally,
    )
    login_limits = SignInLimits.of_window(
        given.failed_logins_per_user, given.failed_logins_per_address, given.failed_logins_s
    )
    logins = Logins(submissions.database, login_limits, tally=tally)
    service = SmtpService(
        submissions,
        logins,
        SmtpSessionLimits(
            given.login_s, given.command_s, given.message_s, given.session_s, submissions.options.limits.size
        ),
        connections,
        context,
        given.allow_plain_login,
        None if given.local_sender is None else local_sender(submissions.database, given.local_sender),
        given.show_clients,
    )
    renewing = None if certificates is None else asyncio.create_task(certificates.refresh_forever(LOOK_EVERY_S))
    try:
        async with serving_submission(service, connections, listeners) as found:
            schemes = ["smtps" if each.implicit_tls else "smtp" for each in listeners]
            yield [f"{scheme}://{host}:{port}" for scheme, (host, port) in zip(schemes, found, strict=True)]
    finally:
        if renewing is not None:
            renewing.cancel()
        logins.close()


def listeners_of(given: SubmissionSettings, context: ssl.SSLContext | None) -> list[Listener]:
    if context is None and exposed_addresses(addresses_of(given.host, "submission.host")):
        raise SettingsError(
            f"submission.host: {given.host} can be reached by other machines, and passwords must be encrypted; set "
            "submission.certificate_file and submission.key_file, or use 127.0.0.1"
        )
    ports = [(given.port, False)] if context is None else [(given.port, False), (given.tls_port, True)]
    found: list[Listener] = []
    for port, implicit in ports:
        opened = open_listener(
            given.host, port, allow_exposed=context is not None, what="submission", setting="submission.host"
        )
        found.append(Listener(opened, implicit))
    return found


def _certificates(given: SubmissionSettings) -> Certificates | None:
    if given.certificate_file is None or given.key_file is None:
        return None
    try:
        return Certificates(Path(given.certificate_file), Path(given.key_file))
    except BadCertificate as error:
        raise SettingsError(
            f"submission.certificate_file: the certificate or its key cannot be used: {error}; give PEM files that "
            "belong together"
        ) from None
