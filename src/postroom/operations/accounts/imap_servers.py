"""Find the mail servers of an address, and try them: before anything is stored."""

import re
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, Self

from postroom.core.errors import BadInput
from postroom.core.hosts import DnsServer
from postroom.core.mail.servers import AppName, LabelsAs, MailServers, Security, SignInKind
from postroom.mailboxes.imap.account import CredentialsProvider, ImapAccount, open_session
from postroom.mailboxes.imap.connection import Connection
from postroom.mailboxes.imap.discovery import Attempt, Candidate, Records, ServiceRecord, domain_of, find_server
from postroom.mailboxes.imap.errors import ImapError, Unreachable
from postroom.mailboxes.imap.facts import FACTS, NAME
from postroom.mailboxes.imap.labels import Keywords
from postroom.mailboxes.imap.places import KnownPlaces
from postroom.mailboxes.imap.presets import Preset, files_copies, preset_at, preset_for
from postroom.mailboxes.imap.server_report import ServerReport, look_at_server
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.sign_ins import imap_endpoint_of, submission_endpoint_of, trusting
from postroom.mailboxes.imap.source import ImapSource
from postroom.mailboxes.imap.submission import TIMEOUTS, Submission
from postroom.mailboxes.imap.wire import Endpoint
from postroom.operations.preview.preview_account import FetchedMail, Progress, fetch_newest
from postroom.outbound.smtp.dns import Dns, NoSuchName, resolver_of
from postroom.settings.reading import Settings

# A server that a person waits for answers sooner, or not at all.
TRY_S = 10.0
DNS_S = 5.0
LARGEST_FILE = 1_000_000
_PORTS: dict[tuple[str, Security], int] = {
    ("imap", "tls"): 993,
    ("imap", "starttls"): 143,
    ("imap", "plain"): 143,
    ("smtp", "tls"): 465,
    ("smtp", "starttls"): 587,
    ("smtp", "plain"): 587,
}


_AUTHSERV_ID = re.compile(r"(?:\*\.)?[a-z0-9_]+(?:[.-]+[a-z0-9_]+)*")
LONGEST_HOST = 255

_APPS: dict[str, AppName] = {"Gmail": "google", "Microsoft": "microsoft"}


class WantedServer(NamedTuple):
    """A server as the owner named it; what is missing is filled in."""

    host: str | None = None
    port: int | None = None
    security: Security | None = None


class WantedServers(NamedTuple):
    """The owner's choices for the mailbox; everything but the address may be left open."""

    email: str
    imap: WantedServer = WantedServer()
    smtp: WantedServer = WantedServer()
    sends: bool = True
    user_name: str | None = None
    labels_as: LabelsAs | None = None
    trusted_certificates: str | None = None
    app: AppName | None = None
    """Whose app gets access tokens to sign in with; None for a password."""
    authserv_ids: str = ""


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers to try. `origin` tells in words how they were found; `preset` is the provider's, if it is known. A
    server for sending that is kept from last time stays, whether it works at this moment or not.
    """

    imap: Endpoint
    submission: tuple[Endpoint, ...]
    origin: str
    preset: Preset | None = None
    is_foreign: bool = False
    is_submission_given: bool = False
    is_submission_kept: bool = False


@dataclass(frozen=True, slots=True)
class TriedServers:
    """Servers that have let the user in, what the one for reading can do, and why mail cannot be sent now."""

    servers: MailServers
    report: ServerReport
    cannot_send: str | None


class ServerNotFound(BadInput):
    """No server was found for the address: its owner has to name it."""


class DnsRecords:
    """The records of mail servers."""

    def __init__(self, dns: Dns) -> None:
        self._dns = dns

    @classmethod
    def of_system(cls, servers: Sequence[DnsServer] = ()) -> Self:
        """Asked of these servers, or those of the system."""
        return cls(Dns(resolver_of(servers), time.monotonic, DNS_S))

    async def services(self, name: str) -> Sequence[ServiceRecord]:
        return [ServiceRecord(*each) for each in await self._dns.services(name)]

    async def mail_hosts(self, domain: str) -> Sequence[str]:
        try:
            found = await self._dns.mail_hosts(domain)
        except NoSuchName:
            return []
        return [each.name for each in sorted(found, key=lambda each: each.preference)]


async def choose_servers(
    wanted: WantedServers, last: MailServers | None, settings: Settings, records: Records | None = None
) -> FoundServers:
    """The servers to try: what the owner names now, then what the account has, then what is found for the address.

    The server for sending is looked for again if the mailbox is named on another host, or had none.
    """
    is_elsewhere = last is None or _host(wanted.imap) != last.imap_host or last.smtp_host is None
    if last is None or (wanted.imap.host is not None and is_elsewhere):
        return await find_servers(wanted, settings, records)
    found = servers_of_last_time(last)
    if wanted.imap != WantedServer():
        found = replace(found, imap=_endpoint("imap", wanted.imap._replace(host=last.imap_host), settings))
    if not wanted.sends:
        return replace(found, submission=(), is_submission_kept=False)
    if wanted.smtp != WantedServer():
        given = _endpoint("smtp", wanted.smtp._replace(host=wanted.smtp.host or last.smtp_host), settings)
        return replace(found, submission=(given,), is_submission_given=True, is_submission_kept=False)
    return found


async def find_servers(wanted: WantedServers, settings: Settings, records: Records | None = None) -> FoundServers:
    """The servers of the address: those that were named, or that are found and answer with a valid certificate."""
    domain, context = domain_of(wanted.email), checked_certificates(wanted.trusted_certificates)
    if wanted.imap.host is not None:
        imap = _endpoint("imap", wanted.imap, settings)
        preset = preset_at(imap.host)
        # Who runs a server has often both in one place.
        beside = (Endpoint(imap.host, 465), Endpoint(imap.host, 587, "starttls"))
        submission = beside if preset is None else (preset.submission,)
        found = FoundServers(imap, submission, "as you named it", preset)
    else:
        _check_lone(wanted.imap)
        if (preset := preset_for(domain)) is not None:
            _check_takes_passwords(preset, wanted.app)
        records = records or DnsRecords.of_system(settings.delivery.name_servers)
        discovery = await find_server(domain, records, partial(_answers, context=context))
        if discovery.found is None:
            raise _nothing_found(domain, discovery.attempts)
        found = _from_candidate(discovery.found, domain)
    if found.preset is not None:
        _check_takes_passwords(found.preset, wanted.app)
    if not wanted.sends:
        return replace(found, submission=())
    if wanted.smtp.host is not None:
        given = _endpoint("smtp", wanted.smtp, settings)
        return replace(found, submission=(given,), is_submission_given=True)
    return found


def servers_of_last_time(servers: MailServers) -> FoundServers:
    """The servers that the account has."""
    imap, sending = imap_endpoint_of(servers), submission_endpoint_of(servers)
    submission = () if sending is None else (sending,)
    return FoundServers(imap, submission, "as before", preset_at(imap.host), is_submission_kept=sending is not None)


async def check_answer(wanted: WantedServers, found: FoundServers) -> None:
    """Connect to the server for reading, before a password is asked for. Raises ImapError."""
    await _answers(found.imap, checked_certificates(wanted.trusted_certificates))


async def try_servers(
    wanted: WantedServers, found: FoundServers, password: str, now: datetime, smtp_password: str | None = None
) -> TriedServers:
    """Sign in to both servers, with an access token as password if there is an app. Raises ImapError if the one for
    reading, or a named one for sending, refuses.
    """
    context = checked_certificates(wanted.trusted_certificates)
    user = wanted.user_name or wanted.email
    kind: SignInKind = "password" if wanted.app is None else "xoauth2"
    session = await open_session(found.imap, _giving(Credentials(user, password, kind)), context, TRY_S)
    try:
        report = await look_at_server(session)
    finally:
        session.connection.close()
    sending = _giving(Credentials(user, smtp_password or password, kind))
    submission, cannot_send = await _first_that_works(found, sending, context)
    servers = MailServers(
        imap_host=found.imap.host,
        imap_port=found.imap.port,
        imap_security=found.imap.security,
        smtp_host=submission and submission.host,
        smtp_port=submission and submission.port,
        smtp_security=submission and submission.security,
        user_name=user,
        sign_in=kind,
        labels_as=wanted.labels_as or report.labels_as,
        files_sent_mail=submission is not None and files_copies(submission.host),
        given_at=now,
        trusted_certificates=wanted.trusted_certificates,
        authserv_ids=wanted.authserv_ids,
    )
    return TriedServers(servers, report, cannot_send)


def sending_waits(tried: TriedServers) -> str:
    """Say that the server for sending is kept although it did not work when it was tried."""
    return (
        f"Mail cannot be sent at the moment: {tried.cannot_send}. "
        f"{tried.servers.smtp_host} is kept, and tried again for each mail."
    )


async def fetch_to_preview(
    email: str, servers: MailServers, password: str, most: int, progress: Progress
) -> FetchedMail:
    """Fetch the newest mail from servers that were tried, before anything is stored."""
    context = checked_certificates(servers.trusted_certificates)
    credentials = _giving(Credentials(servers.user_name, password, servers.sign_in))
    account = ImapAccount(partial(open_session, imap_endpoint_of(servers), credentials, context, TRY_S))
    try:
        found = await fetch_newest(ImapSource(account, KnownPlaces(), Keywords()), NAME, most, progress)
    finally:
        await account.log_out()
    return FetchedMail(email, found, frozenset(), FACTS.receiving_hosts(servers))


def checked_authserv_ids(given: Sequence[str]) -> str:
    """The names of the hosts that receive the mail, as they are stored. Raises BadInput for one that is none."""
    names = [each.strip().lower().removesuffix(".") for each in given]
    for name in names:
        if len(name) > LONGEST_HOST or _AUTHSERV_ID.fullmatch(name) is None:
            remedy = "write the first word of Authentication-Results, such as mx.example.com, or *.example.com"
            raise BadInput("--authserv-id", f"{name[:100]!r} is no name of a host", remedy)
    return " ".join(sorted(set(names)))


def checked_certificates(text: str | None) -> ssl.SSLContext:
    """The context that trusts these certificates too. Raises BadInput if there are none in the text."""
    try:
        return trusting(text)
    except (ssl.SSLError, ValueError):
        problem = "contains no certificates in PEM"
        raise BadInput("--ca-file", problem, "name a file that begins with -----BEGIN CERTIFICATE-----") from None


async def _first_that_works(
    found: FoundServers, sending: CredentialsProvider, context: ssl.SSLContext
) -> tuple[Endpoint | None, str | None]:
    if not found.submission:
        return None, "no server for sending is known"
    tried = ", ".join(f"{each.host}:{each.port}" for each in found.submission)
    problem = f"no server for sending answers at {tried}"
    timeouts = replace(TIMEOUTS, connect=TRY_S)
    for each in found.submission:
        try:
            await Submission(each, sending, context, timeouts=timeouts).check()
        except ImapError as error:
            if found.is_submission_given:
                raise
            if not isinstance(error, Unreachable):
                problem = _short(str(error))
        else:
            return each, None
    return (found.submission[0] if found.is_submission_kept else None), problem


def _giving(credentials: Credentials) -> CredentialsProvider:
    async def give() -> Credentials:
        return credentials

    return give


async def _answers(endpoint: Endpoint, context: ssl.SSLContext) -> None:
    (await Connection.connect(endpoint, context, TRY_S)).close()


def _endpoint(kind: str, wanted: WantedServer, settings: Settings) -> Endpoint:
    security: Security = wanted.security or "tls"
    if security == "plain" and not settings.imap.allow_plain:
        raise BadInput(f"--{kind}-security", "plain is not allowed", "use tls or starttls, or set imap.allow_plain")
    host = _host(wanted)
    if not host or any(each.isspace() or not each.isprintable() or each in "/@" for each in host):
        raise BadInput(f"--{kind}-host", f"{host[:100]!r} is no host name", "use one such as imap.example.com")
    return Endpoint(host, wanted.port or _PORTS[kind, security], security)


def _host(wanted: WantedServer) -> str:
    return (wanted.host or "").strip().lower().rstrip(".")


def _check_lone(wanted: WantedServer) -> None:
    if wanted.port is not None or wanted.security is not None:
        raise BadInput("--imap-host", "is missing", "name the host beside its port and security")


def _check_takes_passwords(preset: Preset, app: AppName | None) -> None:
    """Refuse a provider that is known to accept no password, before one is asked for."""
    if not preset.takes_passwords and app is None:
        problem = f"{preset.name} accepts no passwords over IMAP, app passwords neither, only access tokens"
        remedy = "use `postroom account add imap --sign-in microsoft`; docs/how-to/imap.md says what it needs"
        raise BadInput("email", problem, remedy)


def app_at(servers: MailServers) -> AppName | None:
    """Whose app has the consent to an account, as far as its server tells; None also if it has a password."""
    preset = None if servers.sign_in == "password" else preset_at(servers.imap_host)
    return None if preset is None else _APPS.get(preset.name)


def _from_candidate(candidate: Candidate, domain: str) -> FoundServers:
    origin = {
        "preset": "known" if candidate.preset is None else f"{candidate.preset.name}, a known provider",
        "records": f"named by the records of {domain}",
        "guess": "a usual name, which answered",
    }[candidate.origin]
    return FoundServers(candidate.imap, candidate.submission, origin, candidate.preset, candidate.is_foreign)


def _short(problem: str) -> str:
    return problem.partition("; ")[0][:120]


def _nothing_found(domain: str, attempts: Sequence[Attempt]) -> ServerNotFound:
    servers: dict[str, list[str]] = {}
    for each in attempts:
        host, port = each.endpoint.host, each.endpoint.port
        said = _short(each.problem).removeprefix(f"{host} was not reached: ").removeprefix(f"port {port}: ")
        servers.setdefault(said.removeprefix(f"the connection to {host} is not secure: "), []).append(f"{host}:{port}")
    tried = "; ".join(f"{', '.join(names)} ({said})" for said, names in servers.items())
    return ServerNotFound(
        "--imap-host", f"no mail server was found for {domain}; tried {tried}", "name it: --imap-host HOST"
    )
