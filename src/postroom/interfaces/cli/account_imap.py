"""`postroom account add imap`: asks for what is missing, says what the server can do, and offers a preview first."""

import shlex
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import typer

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.interfaces.cli.account_adding import AddOptions, asked, asked_address, show_connected
from postroom.interfaces.cli.output import harmless_lines
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.typed_secrets import typed_secret
from postroom.words.connectors import account_state

if TYPE_CHECKING:
    from postroom.core.mail.servers import AppName, MailServers
    from postroom.mailboxes.imap.tokens import HeldConsent
    from postroom.operations.accounts.accounts import AccountView
    from postroom.operations.accounts.imap_servers import FoundServers, TriedServers, WantedServers

MOST_TRIES = 3
MOST_PREVIEWED = 200
_SECURITY = {"tls": "TLS", "starttls": "STARTTLS", "plain": "not encrypted"}


@dataclass(frozen=True)
class _Passwords:
    """The means to sign in: passwords, or the first access token and the consent to keep."""

    imap: str = field(repr=False)
    smtp: str | None = field(default=None, repr=False)
    consent: "HeldConsent | None" = None


class _SignedIn(NamedTuple):
    """The servers that have let the owner in, and by what means. `is_new` unless the account was connected before."""

    wanted: "WantedServers"
    tried: "TriedServers"
    passwords: _Passwords
    is_new: bool


def add(session: Session, provider: str, options: AddOptions) -> None:
    """Connect a mailbox, and say what comes next."""
    signed_in = _sign_in(session, provider, options)
    if not _agreed_after_preview(session, signed_in, options):
        typer.echo("Nothing was stored.", err=True)
        return
    account = _store(session, signed_in)
    look = session.command_line(f"preview --account {shlex.quote(account.email)}")
    show_connected(session, account, "over IMAP", [f"Next: {session.command_line('serve')}, or look again: {look}"])


def connect(session: Session, provider: str, options: AddOptions) -> "AccountView":
    """Connect a mailbox, or renew its password or consent."""
    return _store(session, _sign_in(session, provider, options))


def _sign_in(session: Session, provider: str, options: AddOptions) -> _SignedIn:
    """Find the servers and sign in to them. Nothing is stored."""
    from postroom.operations.accounts.connecting_imap import imap_account
    from postroom.operations.accounts.imap_servers import check_answer

    options.refuse(provider, {"level"})
    email = options.email or asked_address()
    before = session.call(imap_account, normalised_address(email))
    wanted = _choices(options, email, before)
    last = None if before is None else before.servers
    found = _find_servers(session, wanted, last)
    _announce(found, before, wanted.app)
    run_briefly(check_answer(wanted, found))
    if wanted.app is None:
        tried, passwords = _signed_in(wanted, found, options.other_smtp_password)
    else:
        tried, passwords = _ask_consent(session, wanted, found, wanted.app, options.no_browser)
    _report(tried)
    return _SignedIn(wanted, tried, passwords, last is None)


def _store(session: Session, signed_in: _SignedIn) -> "AccountView":
    from postroom.operations.accounts.connecting_imap import connect_imap, connect_imap_by_consent
    from postroom.operations.installation.vault import vault_of

    wanted, tried, passwords, _ = signed_in
    vault = vault_of(session.settings)
    if passwords.consent is not None:
        return session.act(connect_imap_by_consent, vault, wanted.email, tried.servers, passwords.consent)
    return session.act(connect_imap, vault, wanted.email, tried.servers, passwords.imap, passwords.smtp)


def _find_servers(session: Session, wanted: "WantedServers", last: "MailServers | None") -> "FoundServers":
    """The servers that are named, known or found; on a terminal the owner is asked for one that is not."""
    from postroom.operations.accounts.imap_servers import ServerNotFound, WantedServer, choose_servers

    if wanted.imap.host is None and last is None:
        _say(f"Looking for the mail server of {wanted.email} …")
    try:
        return run_briefly(choose_servers(wanted, last, session.settings))
    except ServerNotFound as error:
        if not sys.stdin.isatty():
            raise
        _say(f"{error.problem[0].upper()}{error.problem[1:]}.")
        host, _, port = asked("Name of the mail server, such as mail.example.com").strip().partition(":")
        if port and not (port.isascii() and port.isdigit() and 1 <= int(port[:9]) <= 65535):
            raise BadInput("server", f"{port[:20]!r} is no port", "write HOST or HOST:PORT") from None
        named = WantedServer(host, int(port) if port else None)
        return run_briefly(choose_servers(wanted._replace(imap=named), last, session.settings))


def _choices(options: AddOptions, email: str, before: "AccountView | None") -> "WantedServers":
    """The owner's choices. Where an account is renewed, everything left out stays as it was."""
    from postroom.operations.accounts.imap_servers import (
        LARGEST_FILE,
        WantedServer,
        WantedServers,
        checked_authserv_ids,
    )

    last = None if before is None else before.servers
    certificates = None if last is None else last.trusted_certificates
    if options.ca_file is not None:
        from postroom.interfaces.cli.files import read_bytes

        content = read_bytes(options.ca_file, LARGEST_FILE, "--ca-file", "name a file of certificates")
        certificates = content.decode("ascii", "replace")
    app = _app(options, last)
    return WantedServers(
        before.email if before is not None else normalised_address(email),
        WantedServer(options.imap_host, options.imap_port, options.imap_security),
        WantedServer(options.smtp_host, options.smtp_port, options.smtp_security),
        not options.no_sending,
        options.user or (None if last is None else last.user_name),
        options.labels or (None if last is None else last.labels_as),
        certificates,
        app,
        checked_authserv_ids(options.authserv_id) or ("" if last is None else last.authserv_ids),
    )


def _app(options: AddOptions, last: "MailServers | None") -> "AppName | None":
    """Whose app gets the access tokens, as the owner says, or as before; None for a password."""
    from postroom.operations.accounts.imap_servers import app_at

    if options.sign_in is None and last is not None and last.sign_in != "password":
        if (app := app_at(last)) is None:
            raise BadInput("--sign-in", "is missing", "say whose app has the consent: google or microsoft")
        return app
    chosen = options.sign_in or "password"
    refused = {"--no-browser": options.no_browser} if chosen == "password" else {}
    refused |= {"--other-smtp-password": options.other_smtp_password} if chosen != "password" else {}
    for name, value in refused.items():
        if value:
            raise BadInput(name, f"is not for a sign-in by {chosen}", "leave it out")
    return None if chosen == "password" else chosen


def _announce(found: "FoundServers", before: "AccountView | None", app: "AppName | None") -> None:
    """Say where the password or token will go, before it is asked for."""
    if before is not None and before.servers is not None:
        what = "password" if app is None else "consent"
        state = account_state(before.state, before.sign_in)
        _say(f"{before.email} is already connected ({state}): its {what} is renewed; no second account is made.")
    imap = found.imap
    _say(f"Server: {imap.host}, port {imap.port}, {_SECURITY[imap.security]} ({found.origin}).")
    if found.is_foreign:
        problem = f"the domain's records name {imap.host}, which is outside the domain"
        if not sys.stdin.isatty():
            raise BadInput("--imap-host", problem, f"confirm it with --imap-host {imap.host} --imap-port {imap.port}")
        _say(f"Careful: {problem}.")
        typer.confirm("Is that your mail provider?", abort=True, err=True)
    if found.preset is not None and app is None:
        _say(found.preset.password)


def _signed_in(
    wanted: "WantedServers", found: "FoundServers", other_smtp_password: bool
) -> "tuple[TriedServers, _Passwords]":
    """Sign in; on a terminal a wrong password may be corrected, though not often, since servers lock people out."""
    from postroom.mailboxes.imap.errors import ImapSignInRefused
    from postroom.operations.accounts.imap_servers import try_servers

    for left in reversed(range(MOST_TRIES)):
        passwords = _Passwords(
            typed_secret("Password"), typed_secret("Password for sending") if other_smtp_password else None
        )
        try:
            trying = try_servers(wanted, found, passwords.imap, datetime.now(UTC), passwords.smtp)
            return run_briefly(trying), passwords
        except ImapSignInRefused as refused:
            if not left or not sys.stdin.isatty() or refused.cause not in ("password", "app_password"):
                raise
            _say(f"{refused}. Try again.")
    raise AssertionError


def _ask_consent(
    session: Session, wanted: "WantedServers", found: "FoundServers", app: "AppName", no_browser: bool
) -> "tuple[TriedServers, _Passwords]":
    """Ask for consent on the provider's page, and sign in with the first access token."""
    from postroom.interfaces.cli.consent import Browsing, Pasting
    from postroom.mailboxes.imap.apps import mail_app
    from postroom.operations.accounts.connecting_imap import ask_consent
    from postroom.operations.accounts.imap_servers import try_servers

    user = wanted.user_name or wanted.email
    dialog = Pasting() if no_browser else Browsing()
    given = run_briefly(ask_consent(mail_app(session.settings, app), user, dialog))
    tried = run_briefly(try_servers(wanted, found, given.access_token, datetime.now(UTC)))
    return tried, _Passwords(given.access_token, consent=given.consent)


def _report(tried: "TriedServers") -> None:
    from postroom.mailboxes.imap.server_report import in_words
    from postroom.operations.accounts.imap_servers import sending_waits

    _say("\nSigned in. What that means for you:")
    for line in in_words(tried.report, tried.servers.labels_as):
        _say(f"  - {line}")
    if tried.servers.smtp_host is not None and tried.cannot_send is not None:
        _say(f"  - {sending_waits(tried)}")
    elif tried.servers.smtp_host is not None:
        copies = "" if tried.servers.files_sent_mail else ", with a copy in the sent folder"
        _say(f"  - Mail is sent through {tried.servers.smtp_host}{copies}.")
    else:
        _say(f"  - Mail cannot be sent: {tried.cannot_send}. Give a server with --smtp-host, or leave it so.")
    _say("")


def _agreed_after_preview(session: Session, signed_in: _SignedIn, options: AddOptions) -> bool:
    """Show what the rules would do with the newest mail, if wanted; nothing is stored until the owner agrees."""
    email = signed_in.wanted.email
    is_asked = signed_in.is_new and sys.stdin.isatty() and not session.as_json
    if not options.preview and not is_asked:
        return True
    question = f"See what Postroom would do with your newest {MOST_PREVIEWED} messages? Nothing is changed."
    if options.preview or typer.confirm(question, default=True, err=True):
        _show_preview(session, email, signed_in.tried, signed_in.passwords)
    if options.preview:
        return False
    return typer.confirm(f"Connect {email}?", default=True, err=True)


def _show_preview(session: Session, email: str, tried: "TriedServers", passwords: _Passwords) -> None:
    from postroom.interfaces.cli.preview import preview_fetched, reading
    from postroom.operations.accounts.imap_servers import fetch_to_preview

    if not tried.report.messages:
        _say("The inbox is empty: there is nothing to show yet.")
        return
    fetching = fetch_to_preview(email, tried.servers, passwords.imap, MOST_PREVIEWED, reading)
    with progress(session.as_json):
        fetched = run_briefly(fetching)
    preview_fetched(session, fetched)


def _say(text: str) -> None:
    """Say it on standard error; names of folders and reasons for a refusal are the server's own words."""
    typer.echo(harmless_lines(text), err=True)
