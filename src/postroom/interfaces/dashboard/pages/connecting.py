"""Connect a mailbox, step by step: choose what Postroom may do, agree on Google's page, paste the answer."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.routing import Route

from postroom.core.access import OWN, OWN_AGAIN
from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address
from postroom.interfaces.dashboard.after_connecting import page_after_connecting
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.scopes import DEFAULT_LEVEL, LEVELS, Level
from postroom.operations.accounts.accounts import account_of
from postroom.words.connectors import CONSENT_LEVELS


def pages(site: Site) -> list[DashboardPage]:
    return [ConnectPage(site)]


class ConnectPage(DashboardPage):
    address, title, template = "/connectors/new", "Connect Gmail", "connecting.html"
    personal = True
    has_secret = True  # Google's page is opened with one

    async def read(self, visit: Visit) -> Mapping[str, object]:
        email = visit.text("email")
        known = None if email is None else await account_of(self._database, NAME, _address(email))
        return {
            "is_possible": self._parts.consents.is_possible,
            "pending": self._parts.consents.of(visit.visitor.form_token) if visit.may("admin") else None,
            "email": email or "",
            "known": known,
            "level": known.consent.level if known is not None and known.consent is not None else DEFAULT_LEVEL,
            "level_words": CONSENT_LEVELS,
        }

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/connectors/new/begin", self._begin, OWN_AGAIN),
            form_route(self._site, "/connectors/new/finish", self._finish, OWN_AGAIN, is_secret="answer".__eq__),
            form_route(self._site, "/connectors/new/forget", self._forget, OWN),
        ]

    async def _begin(self, form: Form) -> Confirmation:
        email = form.text("email")
        self._parts.consents.begin(
            form.visitor.form_token, _address(email) if email else None, _level(form.text("level"))
        )
        return Confirmation("Now agree on Google's page: step 2.")

    async def _finish(self, form: Form) -> Confirmation:
        answer = form.required("answer", "paste the address that the browser ended at")
        connected = await self._parts.consents.finish(form.visitor.form_token, answer, form.by.signature)
        account = connected.account
        own_page = f"/connectors/gmail/{quote(account.endpoint_identity, safe='')}"
        to = page_after_connecting(self._parts, account, own_page)
        return Confirmation(" ".join((f"{account.email} is connected.", *connected.warnings)), to)

    async def _forget(self, form: Form) -> Confirmation:
        self._parts.consents.forget(form.visitor.form_token)
        return Confirmation("Begun again: nothing was connected.")


def _address(text: str) -> str:
    return normalised_address(text)


def _level(text: str) -> Level:
    for level in LEVELS:
        if level == text:
            return level
    raise BadInput("level", f"{text[:20]!r} is none of them", f"choose one of: {', '.join(LEVELS)}")
