"""Connect a mailbox of a provider that needs an address and a few fields."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.routing import Route

from postroom.core.errors import NotFound
from postroom.core.mail.providers import PROVIDERS
from postroom.interfaces.dashboard.after_connecting import page_after_connecting
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.mailboxes.providers import Provider, provider_named
from postroom.operations.accounts.accounts import account_of
from postroom.operations.accounts.connecting import connect_with_fields


def pages(site: Site) -> list[DashboardPage]:
    return [ConnectFieldsPage(site)]


class ConnectFieldsPage(DashboardPage):
    address, title, template = "/connectors/new/{provider}", "Connect a mailbox", "connecting_fields.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        provider, email = _provider_of(visit.parameters["provider"]), visit.text("email")
        known = None if email is None else await account_of(self._database, provider.facts.name, email)
        return {"provider": provider, "email": email or "", "known": known}

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, f"{self.address}/connect", self._connect, is_secret="email".__ne__),
        ]

    async def _connect(self, form: Form) -> Confirmation:
        provider = _provider_of(form.parameters["provider"])
        email = form.required("email", "write the address of the mailbox")
        given = {each.name: form.exact(each.name) for each in provider.fields}
        name = provider.facts.name
        connected = await connect_with_fields(form.by, self._settings, name, email, given)
        account = connected.account
        own_page = f"/connectors/{quote(name)}/{quote(account.endpoint_identity, safe='')}"
        to = page_after_connecting(self._parts, account, own_page)
        return Confirmation(" ".join((f"{account.email} is connected {provider.facts.way}.", *connected.warnings)), to)


def _provider_of(name: str) -> Provider:
    if name not in PROVIDERS or not (provider := provider_named(name)).fields:
        raise NotFound("there is no such way to connect a mailbox; /connectors has all of them")
    return provider
