"""Plan a backfill: choose mail and limits, see what it would find and cost, and agree to the sum before it is read."""

from collections.abc import AsyncIterator, Mapping
from datetime import date
from functools import partial
from uuid import UUID

from starlette.routing import Route

from postroom.core.backfill.job import NewBackfill
from postroom.core.backfill.plan import planned_backfills
from postroom.core.days import day_in
from postroom.core.errors import BadInput
from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.providers import PROVIDERS
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.forms import Confirmation, Form, explained, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.backfill.estimate_runs import LONGEST_WAIT, Agreement, create_agreed, wanted_of
from postroom.words.backfill import WORDS

ADDRESS = "/backfill/new"
MOST_DOLLARS = 100_000
FIELDS: Mapping[str, str] = {
    "target_categories": "category",
    "rate_limit_per_hour": "rate",
    "daily_cost_cap_cents": "cap",
    "consent": "agreed",
}
"""The fields of the forms by the names that operations have for them."""


def pages(site: Site) -> list[DashboardPage]:
    return [NewBackfillPage(site)]


class NewBackfillPage(DashboardPage):
    address, title, template = ADDRESS, "Plan a backfill", "backfill/new.html"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._runs = runs = site.parts.estimate_runs
        self._backfills = runs.backfills
        self._estimates = runs.estimates

    def changes(self) -> AsyncIterator[None]:
        return self._runs.changes()

    def close(self) -> None:
        super().close()
        self._runs.close()

    async def read(self, visit: Visit) -> Mapping[str, object]:
        run = self._runs.find(_id("run", given)) if (given := visit.text("run")) else None
        shown = visit.text("estimate")
        estimate_id = _id("estimate", shown) if shown else run.result.id if run and run.result else None
        estimate = None if estimate_id is None else await self._estimates.load(estimate_id)
        wanted = wanted_of(estimate) if estimate else run.about if run else None
        accounts = [
            each
            for each in await list_accounts(self._backfills.database)
            if each.state != "removed" and each.provider in PROVIDERS
        ]
        return {
            "run": run,
            "estimate": estimate,
            "wanted": wanted,
            "form": wanted or self._usual(visit),
            "accounts": accounts,
            "categories": list(CATEGORIES),
            "plan": {each.category: each for each in planned_backfills(self._today())},
            "today": self._today(),
            "day_zone": self._backfills.zone,
            "patience_s": int(LONGEST_WAIT.total_seconds()),
            "part": Part,
            **WORDS,
        }

    def _today(self) -> date:
        return day_in(self._backfills.clock(), self._backfills.zone)

    def _usual(self, visit: Visit) -> NewBackfill:
        """The form as it is opened: the plan's window of the category in the address, or finance."""
        category = visit.choice("category", tuple(CATEGORIES), "finance")
        planned = {each.category: each for each in planned_backfills(self._today())}
        first = planned[category].date_from if category in planned else date(self._today().year, 1, 1)
        limits = self._backfills.settings
        return NewBackfill(
            "", "", (category,), first, self._today(), limits.rate_limit_per_hour, limits.daily_cost_cap_cents
        )

    def actions(self) -> list[Route]:
        explain = partial(explained, names=FIELDS)
        return [
            form_route(self._site, "/backfill/estimate", self._estimate, explain=explain),
            form_route(self._site, "/backfill/create", self._create, explain=explain),
        ]

    async def _estimate(self, form: Form) -> Confirmation:
        identity = form.required("endpoint_identity", "choose a mailbox")
        wanted = NewBackfill(
            connector_type=identity.partition(":")[0],
            endpoint_identity=identity,
            target_categories=tuple(form.texts("category")),
            date_from=_day(form, "date_from"),
            date_to=_day(form, "date_to"),
            rate_limit_per_hour=_rate(form),
            daily_cost_cap_cents=_cap(form),
        )
        run = await self._runs.start(wanted, form.by.signature)
        return Confirmation(
            "The connector counts and reads a sample. Nothing is kept, and nothing is spent.", f"{ADDRESS}?run={run.id}"
        )

    async def _create(self, form: Form) -> Confirmation:
        agreed = form.text("agreed")
        agreement = Agreement(
            _id("estimate", form.text("estimate")),
            int(agreed) if agreed.isascii() and agreed.isdecimal() and len(agreed) < 19 else None,
            "background" if form.is_ticked("background") else "batch",
            form.is_ticked("resume_daily"),
            form.is_ticked("acts"),
        )
        created = await create_agreed(self._backfills, self._estimates, agreement, form.by.signature)
        overlap = " It overlaps with another one; each message is read once all the same." if created.overlaps else ""
        return Confirmation(f"The backfill begins when its connector is free.{overlap}", f"/backfill/{created.job.id}")


def _id(name: str, text: str) -> UUID:
    return read_id(text, BadInput(name, f"{text[:40]!r} is no id", "open the page again"))


def _day(form: Form, name: str) -> date:
    text = form.required(name, "write it as 2019-01-31")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(name, f"{text[:40]!r} is not a day", "write it as 2019-01-31") from None


def _rate(form: Form) -> int:
    text = form.required("rate", "write how many messages an hour")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise BadInput("rate", f"{text[:20]!r} is no number", "write it in digits, such as 100")
    return int(text)


def _cap(form: Form) -> int:
    """The cap in cents, from dollars as people write them."""
    text = form.required("cap", "write it in dollars, such as 5.00")
    whole, _, part = text.removeprefix("$").partition(".")
    digits = whole + part
    is_amount = digits.isascii() and digits.isdecimal() and whole and len(part) <= 2
    if not is_amount or not int(digits) or int(whole) > MOST_DOLLARS:
        raise BadInput("cap", f"{text[:20]!r} is no amount", "write it in dollars, such as 5.00")
    return int(whole) * 100 + int(part.ljust(2, "0"))
