"""Simulate a changed rule over stored mail: the work with its progress, then the difference and the cost."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from postroom.core.access import ANSWER
from postroom.core.errors import BadInput, NotFound, Refused
from postroom.core.rules.documents import write_rule
from postroom.core.rules.draft import RuleDraft
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.forms import SEE_OTHER, Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.pages.rules.edited import EditedRule, edited_from
from postroom.interfaces.dashboard.pages.rules.editor import WINDOWS, EditorParts
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.installation.long_tasks import FromPage, LongTasks, Report
from postroom.operations.rules.rule_views import read_rule
from postroom.operations.rules.simulation import (
    MOST_REPLAYED,
    CostEstimate,
    PastMail,
    estimate_cost,
    simulate_change,
)
from postroom.triage.decide.simulated import ChangeOfRules, SimulationResult

MOST_CHANGES = 20


@dataclass(frozen=True, slots=True)
class Simulated:
    """The rule that was simulated, as it was written and as text, over which window, and the result."""

    edited: EditedRule
    text: str
    name: str
    window: str
    found: SimulationResult
    cost: CostEstimate


class SimulationPage(DashboardPage):
    address, title, template = "/rules/simulations/{task}", "Simulation", "rules/simulation.html"

    def __init__(self, site: Site, editor: EditorParts) -> None:
        super().__init__(site)
        self._editor = editor
        self._tasks = LongTasks[FromPage, Simulated]()

    async def read(self, visit: Visit) -> Mapping[str, object]:
        task = self._tasks.look(visit.parameters["task"])
        return {
            "task": task,
            "progress": [Part("done", task.done, "acc")],
            "simulated": task.result,
            "most_changes": MOST_CHANGES,
            "most_messages": MOST_REPLAYED,
        }

    def changes(self) -> AsyncIterator[None]:
        return self._tasks.changes()

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/rules/simulate", self._start, ANSWER),
            form_route(self._site, "/rules/simulations/{task}/cancel", self._cancel, ANSWER),
        ]

    def close(self) -> None:
        self._tasks.close()
        super().close()

    async def _start(self, form: Form) -> Response:
        edited = edited_from(form)
        try:
            days, window = next((each for each in WINDOWS if str(each[0]) == form.text("days")), WINDOWS[1])
            draft = edited.draft()
            change = await self._change(edited, draft)
            mail = PastMail(self._clock() - timedelta(days=days) if days else None)

            async def work(report: Report) -> Simulated:
                now = self._clock()
                found = await simulate_change(self._database, self._settings, change, now, report, mail)
                cost = estimate_cost(found, self._settings.model)
                return Simulated(edited, write_rule(draft), draft.name, window, found, cost)

            back = f"{edited.address}?draft={self._editor.drafts.keep(edited)}"
            task = self._tasks.start(FromPage(f"Simulate “{draft.name}” over {window}", back), work)
        except (BadInput, NotFound, Refused) as error:
            return self._editor.kept(edited, str(error))
        return RedirectResponse(f"/rules/simulations/{task.id}", SEE_OTHER)

    async def _change(self, edited: EditedRule, draft: RuleDraft) -> ChangeOfRules:
        """Return the change: the rule as if it were on, in place of the stored one, which may have another name."""
        active = replace(draft, enabled=True, disabled_reason=None, shadow=False)
        if edited.rule_id is None:
            return ChangeOfRules([active])
        before = (await read_rule(self._database, self._clock, edited.rule_id)).rule.name
        return ChangeOfRules([active], without=[before] if before != draft.name else [])

    async def _cancel(self, form: Form) -> Confirmation:
        task = self._tasks.look(form.parameters["task"])
        await self._tasks.cancel(task.id)
        return Confirmation("Canceled; nothing was changed.", to=task.about.back)
