"""Connect a mailbox over IMAP: its address and password, and the server where it is not found by itself."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from starlette.routing import Route

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.mailboxes.imap.server_report import in_words
from postroom.operations.accounts.connecting_imap import connect_imap, imap_account
from postroom.operations.accounts.imap_servers import (
    FoundServers,
    WantedServer,
    WantedServers,
    choose_servers,
    sending_waits,
    try_servers,
)
from postroom.operations.installation.vault import vault_of
from postroom.words.connectors import SERVER_LABELS, SERVER_SECURITIES

T = TypeVar("T", bound=str)


def pages(site: Site) -> list[DashboardPage]:
    return [ConnectImapPage(site)]


class ConnectImapPage(DashboardPage):
    address, title, template = "/connectors/imap", "Connect a mailbox over IMAP", "connecting_imap.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        email = visit.text("email")
        known = None if email is None else await imap_account(self._database, email)
        return {"email": email or "", "known": known, "securities": SERVER_SECURITIES, "label_words": SERVER_LABELS}

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/connectors/imap/connect", self._connect)]

    async def _connect(self, form: Form) -> Confirmation:
        email = normalised_address(form.required("email", "write the address of the mailbox"))
        password = form.exact("password")
        if not password:
            raise BadInput("password", "is empty", "give the password, or an app password of the provider")
        known = await imap_account(self._database, email)
        last = None if known is None else known.servers
        wanted = _choices(form, email)
        if last is not None:
            wanted = wanted._replace(
                user_name=wanted.user_name or last.user_name,
                labels_as=wanted.labels_as or last.labels_as,
                trusted_certificates=wanted.trusted_certificates or last.trusted_certificates,
                authserv_ids=wanted.authserv_ids or last.authserv_ids,
            )
        found = await choose_servers(wanted, last, self._settings)
        _check_named(found)
        smtp_password = form.exact("smtp_password") or None
        tried = await try_servers(wanted, found, password, self._clock(), smtp_password)
        account = await connect_imap(
            form.by,
            vault_of(self._settings),
            email,
            tried.servers,
            password,
            smtp_password,
        )
        # What is missing comes first: what is shown has an end.
        words: list[str] = []
        if tried.cannot_send is not None:
            words = [sending_waits(tried) if tried.servers.smtp_host else f"Mail cannot be sent: {tried.cannot_send}."]
        words += in_words(tried.report, tried.servers.labels_as)
        to = f"/connectors/imap/{quote(account.endpoint_identity, safe='')}"
        return Confirmation(" ".join((f"{account.email} is connected to {tried.servers.imap_host}.", *words)), to)


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
        problem = f"the domain's records name {found.imap.host}, which is outside the domain"
        raise BadInput("server", problem, "if that is your provider, write it into the field for the server")
