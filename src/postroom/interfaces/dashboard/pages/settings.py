"""Settings: people, tokens, protected mail, the model's budget, and every setting in effect with where it was set.

What is changed here is stored in the database. Settings of the file and the environment are shown, and changed there.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from postroom.core.actions.safety import ProtectedKind
from postroom.core.choices import choice
from postroom.core.days import zone_named
from postroom.core.visitors import PERSON_ROLES, PersonRole
from postroom.interfaces.dashboard.forms import Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.actions.protection import list_protected
from postroom.operations.installation.settings_view import SettingView, settings_in_effect
from postroom.operations.people.people import (
    LinkAnswer,
    add_person,
    list_people,
    make_link,
)
from postroom.operations.people.tokens import TokenRole, list_tokens, make_token
from postroom.operations.rules.model import ModelStatus, model_status
from postroom.words.settings import SETTING_WORDS, SettingWords, setting_value

KINDS: tuple[ProtectedKind, ...] = ("sender", "domain", "label")
ROLES: tuple[TokenRole, ...] = ("agent", "dashboard", "connector", "metrics", "admin")
"""The roles of tokens that can be made on the page. Those of senders are made where senders are."""
LIFETIMES: Mapping[str, timedelta | None] = {
    "30 days": timedelta(days=30),
    "1 year": timedelta(days=365),
    "no end": None,
}


def pages(site: Site) -> list[DashboardPage]:
    return [SettingsPage(site)]


class SettingsPage(DashboardPage):
    address, title, template = "/settings", "Settings", "settings.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        model, settings = self._settings.model, settings_in_effect(self._parts.live)
        return {
            "people": await list_people(self._database) if visit.may("admin") else [],
            "person_roles": PERSON_ROLES,
            "signs_in": self._settings.web.sign_in,
            "tokens": await list_tokens(self._database),
            "protected": await list_protected(self._database),
            "model": model,
            "spend": await self._spend(),
            "changeable": _changeable(settings),
            "sections": _sections(settings),
            "kinds": KINDS,
            "roles": ROLES,
            "lifetimes": list(LIFETIMES),
            "now": self._clock(),
        }

    async def _spend(self) -> ModelStatus | None:
        if self._settings.model.provider == "none":
            return None
        zone = zone_named(self._settings.time_zone)
        return await model_status(self._database, self._settings.model, self._clock, zone=zone)

    def actions(self) -> list[Route]:
        site = self._site
        return [
            form_route(site, "/settings/tokens", self._create_token),
            form_route(site, "/settings/people", self._add_person),
            form_route(site, "/settings/people/{name}/link", self._make_link),
        ]

    async def _add_person(self, form: Form) -> Response:
        name = form.required("name", "write the name that they will sign in with")
        return self._show_link(name, await add_person(form.by, self._settings, name, _role(form)))

    async def _make_link(self, form: Form) -> Response:
        name = form.parameters["name"]
        return self._show_link(name, await make_link(form.by, self._settings, name))

    def _show_link(self, name: str, made: LinkAnswer) -> Response:
        """Show the way in on a page of its own, once: it is stored nowhere."""
        return HTMLResponse(self._site.render("settings/link.html", name=name, link=made.link))

    async def _create_token(self, form: Form) -> Response:
        """Show the new token on a page of its own, once: it is stored nowhere."""
        role, lifetime = (
            choice("role", form.text("role"), ROLES),
            LIFETIMES.get(form.text("lifetime"), timedelta(days=30)),
        )
        expires_at = None if lifetime is None else self._clock() + lifetime
        identity, name = form.text("identity") or None, form.text("name") or None
        made = await make_token(form.by, role, identity, name=name, expires_at=expires_at)
        return HTMLResponse(self._site.render("settings/token.html", token=made.text, name=form.text("name")))


def _role(form: Form) -> PersonRole:
    return choice("role", form.text("role"), PERSON_ROLES)


def _changeable(settings: list[SettingView]) -> list[tuple[SettingView, SettingWords, str]]:
    """Those that people may change, with their words, and their values as people write them."""
    views = {each.key: each for each in settings}
    return [(views[key], words, setting_value(views[key].value)) for key, words in SETTING_WORDS.items()]


def _sections(settings: list[SettingView]) -> Mapping[str, list[SettingView]]:
    sections: defaultdict[str, list[SettingView]] = defaultdict(list)
    for each in settings:
        sections[each.section].append(each)
    return dict(sorted(sections.items()))
