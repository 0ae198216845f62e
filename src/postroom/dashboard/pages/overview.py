"""The first page: what has arrived and what was done with it, totals, accounts, and the kill switch.

The kill switch is one form that stops all changes to mailboxes, and one that resumes them. Anybody may safely stop
them. Resuming is not safe, so the page offers it only if it is served to this machine alone.
"""

from collections.abc import AsyncIterator, Mapping

from starlette.routing import Route

from postroom.dashboard.forms import Done, Form, form_route
from postroom.dashboard.page import Page
from postroom.dashboard.site import Site
from postroom.dashboard.visit import Visit
from postroom.http_server.listening import is_own_machine
from postroom.manage.database import Database
from postroom.manage.overview import Overview
from postroom.settings.reading import Settings

LINES_SHOWN = 50
WORDS: Mapping[str, Mapping[str, str]] = {
    "deciders": {"deterministic": "rule", "model": "model", "llm": "model", "user": "you"},
    "action_words": {"completed": "done", "executing": "in progress", "awaiting_approval": "waits for your approval"},
    "action_moods": {
        "completed": "good",
        "failed": "bad",
        "rejected": "bad",
        "expired": "bad",
        "executing": "busy",
        "awaiting_approval": "ask",
    },
    "account_words": {"active": "in use", "needs_consent": "needs your consent"},
    "account_moods": {"active": "good", "paused": "ask", "needs_consent": "bad"},
    "connector_words": {"never": "no connector yet"},
    "connector_moods": {"online": "good", "stale": "ask", "offline": "bad"},
}


def page(site: Site, database: Database, settings: Settings) -> Page:
    model = settings.model.name if settings.model.provider != "none" else None
    return OverviewPage(site, Overview(database, model=model), may_resume=is_own_machine(settings.web.host))


class OverviewPage(Page):
    address, title, template = "/", "Overview", "overview.html"

    def __init__(self, site: Site, overview: Overview, *, may_resume: bool = False) -> None:
        super().__init__(site)
        self._overview = overview
        self._may_resume = may_resume

    async def read(self, visit: Visit) -> Mapping[str, object]:
        return {
            "lines": await self._overview.lines(LINES_SHOWN),
            "totals": await self._overview.totals(),
            "accounts": await self._overview.accounts(),
            "control": await self._overview.control_state(),
            "may_resume": self._may_resume,
            **WORDS,
        }

    def changes(self) -> AsyncIterator[None]:
        return self._overview.changes()

    def actions(self) -> list[Route]:
        pause = form_route(self._site, "/pause", self._pause)
        return [pause, form_route(self._site, "/resume", self._resume, again=True)] if self._may_resume else [pause]

    async def _pause(self, form: Form) -> Done:
        await self._overview.pause(form.signed())
        return Done("Paused: nothing is changed in any mailbox until you resume.")

    async def _resume(self, form: Form) -> Done:
        await self._overview.resume(form.signed())
        return Done("Resumed: what waited goes on.")
