"""Mail and events, newest first, with what was decided and why; and one message, from its arrival to now.

What is done here to mail can be taken back, except deleting it for good, which says so first.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo

from starlette.routing import Route

from postroom.core.counted import counted
from postroom.core.errors import BadInput, NotFound
from postroom.core.moments import LONG_AGO
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.mail_frame import frame_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.actions.undo import UndoSelection, undo_selection
from postroom.operations.mail.mail_actions import read_actions, request_action, wait_for_outcome
from postroom.operations.mail.mail_lines import (
    BY,
    CHANNELS,
    KINDS,
    MOST_COUNTED,
    STATES,
    TIERS,
    TODAY,
    MailQuestion,
    count_hidden,
    count_states,
    list_lines,
    read_since,
)
from postroom.operations.mail.mail_page import EventDetail, MailDetail, show_message
from postroom.operations.parts import Parts
from postroom.words.actions import NAME_A_LABEL, OFFERED
from postroom.words.backfill import CATEGORY_WORDS
from postroom.words.mail import DECIDERS, LIST_STATES, SPANS

FILTERS = ("q", "kind", "tier", "category", "state", "by", "account", "since")
PATIENCE = timedelta(seconds=1.5)
"""How long a form waits for its action, so that the page can say that it is done."""
VIEWS = ("text", "html")


def pages(site: Site) -> list[DashboardPage]:
    return [MailPage(site), MessagePage(site)]


class MailPage(DashboardPage):
    address, title, template = "/mail", "Mail", "mail.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        """Return the list and, beside it, the message that the address opens."""
        page = await list_lines(self._database, self._question(visit))
        counts = await count_states(self._database)
        return {
            "page_of_mail": page,
            "counts": counts,
            "hidden_today": await count_hidden(self._database, read_since(TODAY, self._clock(), visit.zone)),
            "hidden_count": await self._count_hidden(visit),
            "most_counted": MOST_COUNTED,
            "accounts": [each.email for each in await list_accounts(self._database) if each.state != "removed"],
            "chosen": {name: visit.filters[name] for name in FILTERS if name in visit.filters},
            "tiers": TIERS,
            "categories": CATEGORY_WORDS,
            "spans": SPANS,
            "states": LIST_STATES,
            "deciders": DECIDERS,
            "older": None if page.next is None else visit.with_filters(before=page.next),
            "newest": visit.with_filters(before=None) if "before" in visit.filters else None,
            **await self._opened(visit),
        }

    async def _count_hidden(self, visit: Visit) -> int:
        """Count what "Undo all" would bring back; 0 where the list is not of that."""
        if visit.text("state") != "hidden":
            return 0
        return await count_hidden(self._database, self._since(visit.text("since"), visit.zone) or LONG_AGO)

    def _question(self, visit: Visit) -> MailQuestion:
        return MailQuestion(
            visit.text("q"),
            visit.choice("kind", KINDS, "all"),
            visit.text("tier"),
            visit.choice("state", STATES, STATES[0]) if "state" in visit.filters else None,
            visit.choice("by", BY, BY[0]) if "by" in visit.filters else None,
            visit.text("account"),
            self._since(visit.text("since"), visit.zone),
            visit.text("before"),
            visit.text("category"),
        )

    def _since(self, given: str | None, zone: tzinfo) -> datetime | None:
        return None if given is None else read_since(given, self._clock(), zone)

    async def _opened(self, visit: Visit) -> Mapping[str, object]:
        name = visit.text("open")
        if name is None:
            return {"opened": False, "why_not_opened": "", "chosen_id": ""}
        try:
            shown = await show_message(self._database, name, self._parts.policy)
        except (NotFound, BadInput) as error:
            return {"opened": False, "why_not_opened": str(error), "chosen_id": ""}
        _note_read(self._parts)
        id = shown.id if isinstance(shown, MailDetail) else shown.line.id
        return {"opened": True, "why_not_opened": "", "chosen_id": str(id), **_values(shown, visit)}

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/mail/bring-back", self._bring_back)]

    async def _bring_back(self, form: Form) -> Confirmation:
        """Undo all that was hidden since then; without a time, ever."""
        selection = UndoSelection(since=self._since(form.text("since") or None, form.zone), hidden=True)
        undone = await undo_selection(form.by, selection)
        if not undone.actions and not undone.canceled:
            return Confirmation("Nothing to undo.")
        canceled = f" Canceled {counted(undone.canceled, 'action')} not yet done." if undone.canceled else ""
        return Confirmation(f"Bringing back {counted(undone.messages, 'message')}.{canceled}")


class MessagePage(DashboardPage):
    address, title, template = "/mail/{message}", "Mail", "message.html"
    channels = CHANNELS

    def __init__(self, site: Site, patience: timedelta = PATIENCE) -> None:
        super().__init__(site)
        self._patience = patience

    async def read(self, visit: Visit) -> Mapping[str, object]:
        shown = await show_message(self._database, visit.parameters["message"], self._parts.policy)
        _note_read(self._parts)
        return _values(shown, visit)

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/mail/{message}/do", self._do), frame_route(self._site, self._parts.html)]

    async def _do(self, form: Form) -> Confirmation:
        name = form.required("action", "choose what to do")
        if name in NAME_A_LABEL:
            name = f"{name} {form.required('label', 'name the label')}"
        steps = read_actions([name])
        message = form.parameters["message"]
        asked = await request_action(form.by, message, steps, self._parts.policy)
        outcome = await wait_for_outcome(self._database, asked, self._patience)
        return Confirmation(_sentence(outcome.what), action=str(outcome.action_id), is_undoable=bool(outcome.undo_id))


def _values(shown: MailDetail | EventDetail, visit: Visit) -> Mapping[str, object]:
    """The values that show one message or event."""
    is_mail = isinstance(shown, MailDetail)
    return {
        "mail": shown if is_mail else None,
        "event": None if is_mail else shown,
        "others": OFFERED,
        "view": visit.choice("view", VIEWS, VIEWS[0]),
    }


def _sentence(what: str) -> str:
    return f"{what[:1].upper()}{what[1:]}."


def _note_read(parts: Parts) -> None:
    if parts.demo_tour is not None:
        parts.demo_tour.note_read()
