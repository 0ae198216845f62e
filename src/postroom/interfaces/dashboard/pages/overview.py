"""The first page: what needs a person, the road of messages as a picture, spend, accounts, the newest messages.

The kill switch is one form that stops all changes to mailboxes, and one that resumes them. Anybody who may act may
safely stop them. Resuming is not safe, so people prove again who they are.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping

from starlette.routing import Route

from postroom.core.counted import counted
from postroom.core.queue.queues import EMAIL, GATEWAY, HISTORY
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.display import TIER_KINDS, shown, span, words
from postroom.interfaces.dashboard.flow import Place, Ribbon
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.actions.undo import UndoSelection, undo_selection
from postroom.operations.mail.mail_lines import read_since
from postroom.operations.overview.overview import WINDOWS, Overview, WindowName
from postroom.operations.overview.road import Road
from postroom.operations.rules.model import ModelStatus
from postroom.words.connectors import ACCOUNT_MOODS, LIVENESS, LIVENESS_MOODS, account_state
from postroom.words.road import DECIDERS, ENDINGS, TITLES

LINES_SHOWN = 50
WORDS: Mapping[str, object] = {
    "account_state": account_state,
    "account_moods": ACCOUNT_MOODS,
    "connector_words": LIVENESS,
    "connector_moods": LIVENESS_MOODS,
}
MAIL_TIERS = (*EMAIL.tiers, HISTORY)
TIERS = (*EMAIL.tiers, HISTORY, *GATEWAY.tiers)


def pages(site: Site) -> list[DashboardPage]:
    return [OverviewPage(site)]


class OverviewPage(DashboardPage):
    address, title, template = "/", "Overview", "overview.html"

    @property
    def _overview(self) -> Overview:
        return self._parts.overview

    async def read(self, visit: Visit) -> Mapping[str, object]:
        window: WindowName = visit.choice("window", tuple(WINDOWS), "24h")
        accounts = await self._overview.accounts()
        road = await self._overview.road(WINDOWS[window])
        spend = await self._overview.spend()
        lines = await self._overview.lines(LINES_SHOWN)
        control = await self._overview.control_state()
        in_line = await self._overview.in_line()
        has_events = bool(in_line or road.came_in)
        first = await self._overview.first_steps(accounts, control, has_mail=bool(lines), has_events=has_events)
        attention = await self._overview.attention(accounts)
        tour = self._site.parts.demo_tour
        return {
            "tour": [] if tour is None else await tour.things(),
            "lines": lines,
            "first": first,
            "accounts": accounts,
            "attention": [each for each in attention if first is None or each.need != "no_account"],
            "in_line": in_line,
            "control": control,
            "road": road,
            "waits": {each.tier: each for each in road.waits},
            "titles": TITLES,
            "columns": road_columns(road, in_line),
            "ribbons": _ribbons(road),
            "window": window,
            "windows": [(each, each) for each in WINDOWS],
            "today": await self._overview.today(visit.zone),
            "hidden": await self._overview.hidden_today(visit.zone),
            "spend": spend,
            "spent": _spend_parts(spend),
            **WORDS,
        }

    def changes(self) -> AsyncIterator[None]:
        return self._overview.changes()

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/today/undo", self._undo_today)]

    async def _undo_today(self, form: Form) -> Confirmation:
        """Undo all that was done since the midnight before the page was shown."""
        since = read_since(form.required("since", "open the page again"), self._clock())
        undone = await undo_selection(form.by, UndoSelection(since=since))
        if not undone.actions:
            return Confirmation("Nothing to undo.")
        return Confirmation(f"Undoing {counted(undone.actions, 'action')} on {counted(undone.messages, 'message')}.")


def _spend_parts(spend: ModelStatus | None) -> list[Part]:
    return [] if spend is None else [Part("spent", spend.spent_today_cents, "acc")]


def road_columns(road: Road, in_line: Mapping[str, int]) -> list[Mapping[str, Place]]:
    """Return the places of the picture, column by column, in their order."""
    waits = {each.tier: f"95 % under {span(each.most_ms / 1000)}" for each in road.waits}
    undecided, untaken = _left_behind(road, 1), _left_behind(road, 2)
    sources = sorted({each.start for each in road.links if each.stage == 0})
    tiers = [*TIERS, *sorted(set(road.tiers) - set(TIERS))]
    endings = sorted({each.end for each in road.links if each.stage == 2}, key=_order)
    return [
        {each: Place(_source_name(each)) for each in sources},
        {
            each: Place(
                words(each),
                step_words(undecided[each], in_line.get(each, 0) if each in MAIL_TIERS else 0, waits.get(each, "")),
                _tier_address(each),
                TIER_KINDS.get(each, "def"),
            )
            for each in tiers
        },
        {each: Place(said, step_words(untaken[each], untaken[each])) for each, said in DECIDERS.items()},
        {each: Place(ENDINGS.get(each, words(each)), colour="ask" if each == "ask" else "") for each in endings},
    ]


def _left_behind(road: Road, column: int) -> Counter[str]:
    """Return how many more came to each place of a column than went on; fewer than 0 if some had come earlier."""
    behind = Counter[str]()
    for each in road.links:
        if each.stage == column - 1:
            behind[each.end] += each.count
        if each.stage == column:
            behind[each.start] -= each.count
    return behind


def step_words(behind: int, waiting: int, more: str = "") -> str:
    """Say what the difference between those that came and those that went on is made of."""
    waiting = max(0, waiting)
    parts = [
        f"{waiting:,} still waiting" if waiting else "",
        f"{behind - waiting:,} not decided here" if behind > waiting else "",
        f"{waiting - behind:,} from earlier or another tier" if behind < waiting else "",
        more,
    ]
    return " · ".join(filter(None, parts))


def _source_name(endpoint: str) -> str:
    """Return an endpoint such as `gmail:user:ada@x.example` as people call it: `Gmail ada@x.example`."""
    provider, _, rest = endpoint.partition(":")
    return f"{provider[:1].upper()}{provider[1:]} {shown(rest.removeprefix('user:'), 30)}".strip()


def _tier_address(tier: str) -> str:
    return f"/mail?tier={tier}" if tier in EMAIL.tiers else "/queues"


def _order(ending: str) -> tuple[int, str]:
    known = list(ENDINGS)
    return (known.index(ending) if ending in known else len(known), ending)


def _ribbons(road: Road) -> list[Ribbon]:
    ordered = sorted(road.links, key=lambda each: (each.stage, -each.count))
    return [Ribbon(each.stage, each.start, each.end, TIER_KINDS.get(each.tier, "dim"), each.count) for each in ordered]
