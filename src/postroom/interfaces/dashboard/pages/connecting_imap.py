"""Connect a mailbox over IMAP: its address and password, and the server where it is not found by itself.

A form that is refused is shown again with its fields, the problem beside the field that it is about; only passwords
have to be typed again.
"""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from starlette.routing import Route

from postroom.core.errors import BadInput, Conflict, MailboxError
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.servers import MailServers
from postroom.interfaces.dashboard.after_connecting import page_after_connecting
from postroom.interfaces.dashboard.forms import Confirmation, Form, explained, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.refused_forms import in_sentences
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.mailboxes.imap.errors import ImapSignInRefused, Unreachable
from postroom.mailboxes.imap.presets import PRESETS, preset_at
from postroom.mailboxes.imap.server_report import in_words
from postroom.operations.accounts.connecting_imap import connect_imap, imap_account
from postroom.operations.accounts.imap_servers import (
    FoundServers,
    ServerNotFound,
    TriedServers,
    WantedServer,
    WantedServers,
    choose_servers,
    sending_waits,
    try_servers,
)
from postroom.operations.installation.vault import vault_of
from postroom.words.connectors import SERVER_LABELS, SERVER_PROBLEMS, SERVER_SECURITIES, SIGN_IN_REFUSED

T = TypeVar("T", bound=str)

PASSWORDS = ("password", "smtp_password")
SERVER_FIELDS: Mapping[str, str] = {
    "--imap-host": "imap_host",
    "--smtp-host": "smtp_host",
    "--imap-security": "imap_security",
    "--smtp-security": "smtp_security",
    "address": "email",
    "user": "email",
}
"""The fields of the form by the names that operations have for them."""


def pages(site: Site) -> list[DashboardPage]:
    return [ConnectImapPage(site)]


class ConnectImapPage(DashboardPage):
    address, title, template = "/connectors/imap", "Connect your mailbox", "connecting_imap.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        email = visit.text("email")
        known = None if email is None else await imap_account(self._database, email)
        return {
            "email": email or "",
            "known": known,
            "securities": SERVER_SECURITIES,
            "label_words": SERVER_LABELS,
            "presets": [each for each in PRESETS if each.domains and each.takes_passwords],
        }

    def actions(self) -> list[Route]:
        is_secret = PASSWORDS.__contains__
        return [form_route(self._site, f"{self.address}/connect", self._connect, is_secret=is_secret, explain=_explain)]

    async def _connect(self, form: Form) -> Confirmation:
        email = normalised_address(form.required("email", "write the address of the mailbox"))
        password = form.exact("password")
        if not password:
            raise BadInput("password", "is empty", "enter the password, or an app password of your provider")
        known = await imap_account(self._database, email)
        last = None if known is None else known.servers
        wanted = _with_last(_choices(form, email), last)
        found = await choose_servers(wanted, last, self._settings)
        _check_named(found)
        smtp_password = form.exact("smtp_password") or None
        tried = await try_servers(wanted, found, password, self._clock(), smtp_password)
        account = await connect_imap(form.by, vault_of(self._settings), email, tried.servers, password, smtp_password)
        # What is missing comes first: what is shown has an end.
        words = [f"{account.email} is connected to {tried.servers.imap_host}.", *_cannot_send(tried)]
        if account.acts_from is not None:
            words += in_words(tried.report, tried.servers.labels_as)
        own_page = f"/connectors/imap/{quote(account.endpoint_identity, safe='')}"
        return Confirmation(" ".join(words), page_after_connecting(self._parts, account, own_page))


def _cannot_send(tried: TriedServers) -> list[str]:
    if tried.cannot_send is None:
        return []
    return [sending_waits(tried) if tried.servers.smtp_host else f"Mail cannot be sent: {tried.cannot_send}."]


def _explain(error: Exception, form: Form) -> tuple[str, str]:
    """The field that the error is about, and the problem in the words of the page."""
    match error:
        case ImapSignInRefused():
            said = SIGN_IN_REFUSED.get(error.cause, "{host} did not let you in.").format(host=error.host)
            preset = preset_at(error.host)
            is_for_sending = error.host == form.text("smtp_host") != form.text("imap_host")
            return PASSWORDS[is_for_sending], f"{said} {preset.password}" if preset else said
        case ServerNotFound():
            return "imap_host", SERVER_PROBLEMS["not_found"]
        case Conflict():
            return "email", in_sentences(error, "this address")
        case BadInput(field="--ca-file"):
            return "certificates", SERVER_PROBLEMS["certificates"]
        case BadInput():
            return SERVER_FIELDS.get(error.field, error.field), in_sentences(error)
        case Unreachable():
            return "imap_host", SERVER_PROBLEMS["unreachable"].format(host=form.text("imap_host") or "The mail server")
        case MailboxError():
            return "imap_host" if form.text("imap_host") else "", f"{str(error)[:1].upper()}{str(error)[1:]}."
        case _:
            return explained(error, form)


def _with_last(wanted: WantedServers, last: MailServers | None) -> WantedServers:
    """Fill in from last time whatever is not named now."""
    if last is None:
        return wanted
    return wanted._replace(
        user_name=wanted.user_name or last.user_name,
        labels_as=wanted.labels_as or last.labels_as,
        trusted_certificates=wanted.trusted_certificates or last.trusted_certificates,
        authserv_ids=wanted.authserv_ids or last.authserv_ids,
    )


def _choices(form: Form, email: str) -> WantedServers:
    return WantedServers(
        email,
        _server(form, "imap"),
        _server(form, "smtp"),
        not form.is_ticked("no_sending"),
        form.text("user_name") or None,
        _choice(form, "labels_as", SERVER_LABELS),
        form.text("certificates") or None,
    )


def _server(form: Form, kind: str) -> WantedServer:
    host = form.text(f"{kind}_host") or None
    port = form.text(f"{kind}_port")
    if port and (not port.isascii() or not port.isdigit() or not 1 <= int(port[:9]) <= 65535):
        raise BadInput(f"{kind}_port", f"{port[:20]!r} is no port", "use a number from 1 to 65535")
    security = _choice(form, f"{kind}_security", SERVER_SECURITIES)
    # The choice of a kind of security is always sent along: it counts where a host was named.
    return WantedServer(host, int(port) if port else None, security) if host or port else WantedServer()


def _choice(form: Form, name: str, known: Mapping[T, str]) -> T | None:
    given = form.text(name)
    for each in known:
        if each == given:
            return each
    if given:
        raise BadInput(name, f"{given[:20]!r} is none of them", f"choose one of: {', '.join(known)}")
    return None


def _check_named(found: FoundServers) -> None:
    if found.is_foreign:
        problem = f"the records of your domain name {found.imap.host}, which is outside the domain"
        raise BadInput("imap_host", problem, "if that is your provider, enter it here")
