"""The starter rules: each explained, with what it would have done to the mail of the last days."""

import time
from collections.abc import AsyncIterator, Mapping
from datetime import datetime

from starlette.routing import Route

from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.in_words import conditions_in_words
from postroom.core.rules.starter import starters
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.installation.long_tasks import LongTask, LongTasks, Report
from postroom.operations.rules.starter_rules import StarterView, add_starters, plain_starters, replay_starters
from postroom.words.actions import rule_does

GOOD_FOR_S = 600.0
"""The figures are counted again after this time."""
Figures = Mapping[str, StarterView]


class StartersPage(DashboardPage):
    address, title, template = "/rules/starter", "Starter rules", "rules/starters.html"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._tasks = LongTasks[None, Figures](most_running=1)
        self._counting: LongTask[None, Figures] | None = None
        self._counted_at = 0.0
        self._counted_since: datetime | None = None

    async def read(self, visit: Visit) -> Mapping[str, object]:
        counting = self._count()
        return {
            "views": await plain_starters(self._database),
            "words_of": {each.name: [_words(rule) for rule in each.rules] for each in starters()},
            "counting": counting,
            "counted_at": self._counted_since,
            "figures_of": counting.result or {},
        }

    def changes(self) -> AsyncIterator[None]:
        return self._tasks.changes()

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/rules/starter/{starter}/add", self._add)]

    def close(self) -> None:
        self._tasks.close()
        super().close()

    def _count(self) -> LongTask[None, Figures]:
        """Return the counting: the one that runs, a recent one, or a new one."""
        found = self._counting
        if found is not None and (found.state == "running" or time.monotonic() - self._counted_at < GOOD_FOR_S):
            found = self._tasks.look(found.id)
            if found.state != "canceled":
                return found

        async def work(report: Report) -> Figures:
            views = await replay_starters(self._database, self._settings, self._clock(), report)
            return {view.name: view for view in views}

        self._counting, self._counted_at = self._tasks.start(None, work), time.monotonic()
        self._counted_since = self._clock()
        return self._counting

    async def _add(self, form: Form) -> Confirmation:
        kept = await add_starters(form.by, [form.parameters["starter"]])
        if not kept.added:
            return Confirmation("These rules are there already; nothing was changed. They may be off: see Rules.")
        names = ", ".join(f"“{name}”" for name in kept.added)
        return Confirmation(f"Added and on: {names}.")


def _words(rule: RuleDraft) -> tuple[str, str, str]:
    """The name of a rule, when it matches, and what it does."""
    does = rule_does(rule.action_type, rule.parameters)
    return rule.name, rule.description or conditions_in_words(rule.conditions), does
