"""The simulator of the outbound queue: what each group of tenants would wait under the fair queue and other orders.

The request is in the address, and the same request gives the same result, so a result can be shared.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.routing import Route

from postroom.core.access import ANSWER
from postroom.core.errors import BadInput
from postroom.interfaces.dashboard.charts import Part
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom_simulator.picture import simulation_picture
from postroom_simulator.runs import (
    HISTORY_DAYS,
    MOST_FLOOD,
    MOST_HISTORY,
    MOST_SEED,
    MOST_SLOTS,
    SOURCES,
    STEPS,
    Results,
    Simulating,
    SimulationRequest,
    SimulationRuns,
)
from postroom_simulator.simulator import GroupResult
from postroom_simulator.words import ORDERS, SIMULATED

ADDRESS = "/outbound/simulate"
TEMPLATES = Path(__file__).parent / "templates"


class SimulationPage(DashboardPage):
    address, title, template = ADDRESS, "Simulate the outbound queue", "simulation.html"

    def __init__(self, site: Site) -> None:
        site.add_templates(TEMPLATES)
        super().__init__(site)
        self._runs = SimulationRuns(self._database, self._clock)

    def changes(self) -> AsyncIterator[None]:
        return self._runs.changes()

    def close(self) -> None:
        super().close()
        self._runs.close()

    async def read(self, visit: Visit) -> Mapping[str, object]:
        wanted = SimulationRequest(
            visit.choice("source", SOURCES, "flood"),
            visit.number("flood", 0, MOST_FLOOD),
            visit.number("slots", 0, MOST_SLOTS) or None,
            visit.number("seed", 1, MOST_SEED),
        )
        run = self._runs.find(wanted)
        return {
            "wanted": wanted,
            "run": run,
            "drawn": _draw(run.about, run.result) if run is not None and run.result else None,
            "groups": _groups(run.result) if run is not None and run.result else [],
            "steps": STEPS,
            "source_words": {
                name: said.format(days=HISTORY_DAYS, most=MOST_HISTORY) for name, said in SIMULATED.items()
            },
            "order_words": ORDERS,
            "limits": {"flood": MOST_FLOOD, "slots": MOST_SLOTS, "seed": MOST_SEED},
            "part": Part,
        }

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, ADDRESS, self._start, ANSWER),
            form_route(self._site, f"{ADDRESS}/cancel", self._cancel, ANSWER),
        ]

    async def _start(self, form: Form) -> Confirmation:
        wanted = _request(form)
        await self._runs.start(wanted)
        return Confirmation(
            "The simulation runs. Nothing is sent: mail comes and goes in virtual time.", _address(wanted)
        )

    async def _cancel(self, form: Form) -> Confirmation:
        was_running = await self._runs.cancel(_request(form))
        return Confirmation("The simulation is canceled." if was_running else "It had ended before.")


def _request(form: Form) -> SimulationRequest:
    slots = _number(form, "slots", 0)
    return SimulationRequest(
        form.text("source") or "flood", _number(form, "flood", 0), slots or None, _number(form, "seed", 1)
    )


def _number(form: Form, name: str, default: int) -> int:
    text = form.text(name)
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise BadInput(name, f"{text[:20]!r} is no number", "write it in digits")
    return int(text) if text else default


def _address(wanted: SimulationRequest) -> str:
    query = {"source": wanted.source, "flood": wanted.flood or "", "slots": wanted.slots or "", "seed": wanted.seed}
    return f"{ADDRESS}?{urlencode({name: value for name, value in query.items() if value != ''})}"


def _draw(about: Simulating, results: Results) -> Markup:
    return simulation_picture(f"{about.request.source}, {about.slots} deliveries at once", results)


def _groups(results: Results) -> list[tuple[str, list[tuple[str, GroupResult]]]]:
    """Each group of tenants with its waits under each order."""
    return [
        (name, [(result.discipline, each) for result in results for each in result.groups if each.name == name])
        for name in [group.name for group in results[0].groups]
    ]
