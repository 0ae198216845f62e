"""The way into a new installation, after a mailbox was connected: a look at its newest mail, a choice of starter rules,
and the last yes. Nothing in the mailbox changes before that.

A step is a page, and each can be left and come back to: the look and the choice stay in memory. A form names the look
that it was filled in by, so that one from an older page is refused.
"""

from collections.abc import AsyncIterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom.core.access import ANSWER
from postroom.core.errors import BadInput, NotFound, Refused
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.forms import SEE_OTHER, Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.accounts.accounts import AccountView, list_accounts
from postroom.operations.accounts.switching_on import switch_on
from postroom.operations.preview.first_look import FirstLook, LookExample, StarterLook
from postroom.operations.preview.first_looks import LookTask, check_has_rules, check_is_shown
from postroom.operations.rules.starter_rules import LATELY, RuleEffect

From = Literal["now", "lately"]


def pages(site: Site) -> list[DashboardPage]:
    return [StartPage(site), TurnOnPage(site)]


@dataclass(frozen=True, slots=True)
class Seen:
    """How far the way into a mailbox has come: the look at it, and the starters that are chosen by it."""

    account: AccountView
    task: LookTask | None
    chosen: Set[str] = frozenset()

    @property
    def look(self) -> FirstLook | None:
        return None if self.task is None else self.task.result

    @property
    def shown_look(self) -> str:
        """The name of the look in forms."""
        return "" if self.task is None else self.task.started_at.isoformat()

    @property
    def effect(self) -> RuleEffect | None:
        return None if self.look is None else self.look.effect(self.chosen)

    @property
    def effect_lately(self) -> RuleEffect | None:
        return None if self.look is None else self.look.effect_lately(self.chosen)

    def effect_of(self, starter: StarterLook) -> RuleEffect | None:
        """The part of a starter in the effect of all that are chosen, or that it would have with them."""
        return None if self.look is None else self.look.effect_of(starter.rules, self.chosen | {starter.name})

    def examples_of(self, starter: StarterLook) -> Sequence[LookExample]:
        return () if self.look is None else self.look.examples_of(self.chosen | {starter.name}, starter.rules)

    @property
    def progress(self) -> list[Part]:
        return [] if self.task is None else [Part("read", self.task.done, "acc")]


class FirstLookPage(DashboardPage):
    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._looks = site.parts.first_looks

    def changes(self) -> AsyncIterator[None]:
        return self._looks.changes()

    async def read(self, visit: Visit) -> Mapping[str, object]:
        account = await self._account(visit.text("account"))
        seen = None if account is None else self._see(account)
        return {"seen": seen, "mailboxes": len(await self._accounts()), "model": self._settings.model.name}

    def _see(self, account: AccountView) -> Seen:
        task = self._looks.find(account.id)
        look = None if task is None else task.result
        return Seen(account, task, frozenset() if look is None else self._looks.chosen(account.id, look))

    async def _accounts(self) -> list[AccountView]:
        return [each for each in await list_accounts(self._database) if each.state != "removed"]

    async def _account(self, given: str | None) -> AccountView | None:
        """The account of this id or address, or the newest that does not act yet. Raises NotFound."""
        accounts = await self._accounts()
        if given is None:
            waiting = [each for each in accounts if each.acts_from is None]
            return max(waiting, key=lambda each: each.created_at, default=None)
        found = next((each for each in accounts if given in (str(each.id), each.email)), None)
        if found is None:
            raise NotFound("there is no such mailbox; it may have been disconnected")
        return found

    async def _named(self, form: Form) -> AccountView:
        """The account in a form. Raises NotFound and BadInput."""
        account = await self._account(form.required("account", "open the page again"))
        if account is None:
            raise NotFound("there is no such mailbox")
        return account


class StartPage(FirstLookPage):
    address, title, template = "/start", "What Postroom would do", "start/look.html"

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/start/look", self._begin, ANSWER),
            form_route(self._site, "/start/count", self._count, ANSWER),
            form_route(self._site, "/start/choose", self._choose, ANSWER),
        ]

    def close(self) -> None:
        self._looks.close()
        super().close()

    async def _begin(self, form: Form) -> Response:
        account = await self._named(form)
        self._looks.begin(account)
        return RedirectResponse(_at("/start", account), SEE_OTHER)

    async def _count(self, form: Form) -> Response:
        """Answer with what the choice would do, while it is made. It is remembered."""
        try:
            seen = self._see(await self._remember(form))
        except (BadInput, NotFound, Refused) as error:
            return HTMLResponse(self._site.render("start/stale.html", problem=str(error), to=form.back))
        return HTMLResponse(self._site.render("start/counted.html", seen=seen, zone=form.zone))

    async def _choose(self, form: Form) -> Response:
        account = await self._remember(form)
        return RedirectResponse(_at("/start" if form.text("turn") == "count" else "/start/on", account), SEE_OTHER)

    async def _remember(self, form: Form) -> AccountView:
        account = await self._named(form)
        check_is_shown(self._looks.find(account.id), form.text("look"))
        self._looks.choose(account.id, form.texts("starter"))
        return account


class TurnOnPage(FirstLookPage):
    address, title, template = "/start/on", "Turn Postroom on", "start/on.html"

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/start/on/yes", self._turn_on)]

    async def _turn_on(self, form: Form) -> Confirmation:
        account = await self._named(form)
        if account.acts_from is not None:
            return Confirmation(f"Postroom is on for {account.email} already. Nothing was changed.", "/")
        look = check_is_shown(self._looks.find(account.id), form.text("look"))
        check_has_rules(look, form.texts("starter"))
        start = _from(form)
        await switch_on(
            form.by, str(account.id), form.texts("starter"), look.now - LATELY if start == "lately" else None
        )
        what = "Mail of the last 7 days is being sorted." if start == "lately" else "New mail is sorted as it arrives."
        return Confirmation(f"Postroom is on for {account.email}. {what}", "/")


def _from(form: Form) -> From:
    match form.text("from"):
        case "now":
            return "now"
        case "lately":
            return "lately"
        case given:
            raise BadInput("from", f"{given[:20]!r} is none of them", "choose new mail, or the last 7 days too")


def _at(page: str, account: AccountView) -> str:
    return f"{page}?account={account.id}"
