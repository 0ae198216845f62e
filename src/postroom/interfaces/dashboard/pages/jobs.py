"""The jobs: how many stand where, what fails and why, how fast they end, and who works on them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlencode
from uuid import UUID, uuid4

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from postroom.core.access import ANSWER
from postroom.core.errors import NotFound
from postroom.core.jobs.types import CATALOGUE
from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.forms import SEE_OTHER, Confirmation, Form, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.tiers import with_gaps
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.windows import WINDOW_CHOICES, chosen_window
from postroom.operations.installation.long_tasks import FromPage, Report
from postroom.operations.jobs import job_board
from postroom.operations.jobs.job_board import JobFigures, JobFilters
from postroom.operations.jobs.job_bulk import (
    VERBS,
    BulkOutcome,
    ChosenJobs,
    apply_to_chosen,
    choose_by_cause,
    choose_by_filters,
    read_stage,
)
from postroom.operations.jobs.job_causes import job_causes
from postroom.operations.jobs.job_story import load_story
from postroom.operations.jobs.jobs import bulk_record
from postroom.operations.overview.volumes import recorded_spans
from postroom.words.jobs import BUSY, CONSEQUENCES, MOODS, PAST

LATENCY_UNITS = (("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
PATIENCE_S = 1.5
"""How long a form waits for the end of a bulk act before it shows the progress on a page."""
WORDS: Mapping[str, object] = {"moods": MOODS, "verbs": VERBS, "consequences": CONSEQUENCES}


def pages(site: Site) -> list[DashboardPage]:
    return [JobsPage(site), BulkPage(site), JobPage(site)]


class JobsPage(DashboardPage):
    address, title, template = "/jobs", "Jobs", "jobs.html"
    channels = job_board.CHANNELS

    def __init__(self, site: Site, patience_s: float = PATIENCE_S) -> None:
        super().__init__(site)
        self._runs = site.parts.bulk_runs
        self._patience_s = patience_s

    async def read(self, visit: Visit) -> Mapping[str, object]:
        window = chosen_window(visit)
        filters = _filters(visit.filters)
        is_bulk = visit.may("operator") and filters.stage in VERBS and "before" not in visit.filters
        # None depends on another, so PostgreSQL can answer them side by side.
        figures, listed, stages, causes, workforce, selected = await asyncio.gather(
            job_board.read_figures(self._database, self._clock, window),
            job_board.list_page(self._database, filters, visit.text("before")),
            job_board.count_stages(self._database),
            job_causes(self._database),
            job_board.load_workforce(self._database, self._clock),
            self._select(filters if is_bulk else None),
        )
        return {
            "stages": stages,
            "causes": causes,
            "figures": figures,
            "ended_series": with_gaps(ended_series(figures), await recorded_spans(self._database, figures.window)),
            **latency(figures),
            "window": window,
            "windows": WINDOW_CHOICES,
            "filters": filters,
            "types": list(CATALOGUE),
            "listed": listed,
            "selected": selected,
            "workforce": workforce,
            **WORDS,
        }

    async def _select(self, filters: JobFilters | None) -> job_board.SelectedJobs | None:
        return None if filters is None else await job_board.select_page_jobs(self._database, filters)

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/jobs/bulk/{verb}", self._bulk),
            form_route(self._site, "/jobs/cause/{verb}", self._cause),
        ]

    async def _bulk(self, form: Form) -> Confirmation | Response:
        filters = _filters({name: form.text(name) for name in ("stage", "type", "account", "error") if form.text(name)})
        begin = form.required("begin", "open the list again, and use its button")
        return await self._to_many(
            form, await choose_by_filters(self._database, form.parameters["verb"], filters, begin)
        )

    async def _cause(self, form: Form) -> Confirmation | Response:
        key = form.required("cause", "open the page again, and use its button")
        return await self._to_many(form, await choose_by_cause(self._database, form.parameters["verb"], key))

    async def _to_many(self, form: Form, chosen: ChosenJobs) -> Confirmation | Response:
        """Start the work; if it takes longer, show its own page instead of a sentence."""
        run_id = uuid4()

        async def work(report: Report) -> BulkOutcome:
            return await apply_to_chosen(form.by, chosen, run_id=run_id, report=report)

        title = f"{BUSY[chosen.verb]} {_jobs_text(len(chosen.ids))}"
        task = self._runs.start(FromPage(title, form.back), work, str(run_id))
        task = await self._runs.wait(task.id, self._patience_s)
        if task.state != "done" or (ended := task.result) is None:
            return RedirectResponse(f"/jobs/runs/{task.id}", SEE_OTHER)
        return Confirmation(f"{ended.done:,} of {_jobs_text(ended.chosen)} {PAST[ended.verb]}.")


class BulkPage(DashboardPage):
    """A change of many jobs: how far it has come. After a restart, as far as the audit log knows."""

    address, title, template = "/jobs/runs/{run}", "Jobs", "jobs/bulk.html"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._runs = site.parts.bulk_runs

    async def read(self, visit: Visit) -> Mapping[str, object]:
        run = str(_id(visit.parameters["run"]))
        task = self._runs.find(run)
        record = await bulk_record(self._database, run)
        if record is None:
            if task is None:
                raise NotFound("nothing is known of this change of jobs; /jobs lists the jobs as they are")
            return {"run": run, "task": task, "record": None, "state": task.state}
        is_through = record.progress.seen >= record.progress.count
        state = task.state if task is not None else "done" if is_through else "interrupted"
        asked = urlencode({name: value for name, value in record.asked.items() if name != "cause"})
        return {
            "run": run,
            "task": task,
            "record": record,
            "state": state,
            "progress": [Part("done", record.progress.seen, "acc")],
            "again": f"/jobs?{asked}#list" if asked else "/jobs",
            "past": PAST,
        }

    def changes(self) -> AsyncIterator[None]:
        return self._runs.changes()

    def actions(self) -> list[Route]:
        return [form_route(self._site, "/jobs/runs/{run}/cancel", self._cancel, ANSWER)]

    def close(self) -> None:
        self._runs.close()
        super().close()

    async def _cancel(self, form: Form) -> Confirmation:
        await self._runs.cancel(self._runs.look(form.parameters["run"]).id)
        return Confirmation("It stops where it is; what was done stays done.")


class JobPage(DashboardPage):
    address, title, template = "/jobs/{id}", "Job", "job.html"
    channels = job_board.CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        return {"story": await load_story(self._database, _id(visit.parameters["id"])), **WORDS}


def ended_series(figures: JobFigures) -> list[Series]:
    colours = {"completed": "good", "failed": "bad", "canceled": "hist"}
    shown = {state: counts for state, counts in figures.by_state.items() if state == "completed" or any(counts)}
    return [Series(state, counts, colours[state]) for state, counts in shown.items()]


def latency(figures: JobFigures) -> Mapping[str, object]:
    """The latency over time, in the unit that suits its highest value."""
    highest = max(figures.p95_ms, default=0)
    unit, length = next(each for each in LATENCY_UNITS if highest >= each[1] or each[0] == "ms")
    series = Series("p95 of all completed jobs", [each / length or None for each in figures.p95_ms], "acc")
    return {"latency_series": [series], "latency_unit": unit}


def _jobs_text(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def _filters(given: Mapping[str, str]) -> JobFilters:
    return JobFilters(read_stage(given.get("stage")), given.get("type"), given.get("account"), given.get("error"))


def _id(text: str) -> UUID:
    return read_id(text, NotFound(f"{text[:60]!r} is no id of a job; /jobs lists them"))
