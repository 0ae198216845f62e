"""Compose the jobs of a process: the worker, leader election, and background tasks."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta
from zoneinfo import ZoneInfo

from postroom.compose.approvals import ApprovalChannels
from postroom.compose.credentials import open_credentials
from postroom.compose.gate import MailboxGate
from postroom.compose.jobs import RECURRING, job_handlers, renewed_handlers, restore_watch, sender
from postroom.compose.mailboxes import Mailboxes
from postroom.compose.senders import SenderWatch
from postroom.compose.smtp import SmtpOnDemand
from postroom.compose.tasks import allow_open_files, background
from postroom.core.jobs.types import CATALOGUE
from postroom.core.tally import Gauges, Tally
from postroom.jobs.counting import JobCounter
from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.operations.installation.live_settings import LiveSettings
from postroom.outbound.queue.gauges import OutboundGauges
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.queue_watch import QueueWatch
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.store.actions.model_calls import forget_shares
from postroom.store.backfill.backfill_work import call_connectors
from postroom.store.engine.clock import clock_of
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.system.checked_http import CheckedClient
from postroom.system.http_server.metrics import serving_metrics
from postroom.telemetry.exporter import exporting
from postroom.triage.act.maintenance import Chore, maintenance_tasks, run_maintenance
from postroom.triage.decide.adviser import ModelAdviser
from postroom.triage.decide.model import Model, configured_model, release_waiting

EVERY_MINUTE = timedelta(minutes=1)


async def run_worker(settings: Settings, database: Database, stop: asyncio.Event, concurrency: int) -> None:
    """Run only jobs: the worker, and its part in leader election."""
    allow_open_files()
    tally, gauges = Tally(), Gauges()
    async with (
        exporting(settings.telemetry, tally, gauges) as exporter,
        serving_metrics(
            settings.telemetry.listen,
            exporter.metrics_text,
            settings.web.allowed_hosts,
            allow_exposed=settings.web.allow_unprotected_bind,
        ),
        CheckedClient(timeout=30) as http,
        MailboxGate.open(database) as gate,
        open_credentials(settings, database, http) as credentials,
        contextlib.aclosing(Mailboxes(settings, database, http, credentials, gate)) as mailboxes,
        running_jobs(settings, database, mailboxes, stop, concurrency=concurrency, tally=tally, gauges=gauges) as live,
        background(live.follow(database), stop),
    ):
        await stop.wait()


@contextlib.asynccontextmanager
async def running_jobs(
    settings: Settings,
    database: Database,
    mailboxes: Mailboxes,
    stop: asyncio.Event,
    *,
    concurrency: int,
    pace: Pace | None = None,
    tally: Tally | None = None,
    gauges: Gauges | None = None,
    live: LiveSettings | None = None,
) -> AsyncGenerator[LiveSettings]:
    """Run the worker and its part in leader election during the block; jobs still running at its end may finish.

    `stop` is set when one of the parts fails. Outgoing mail is counted in `tally` and `gauges`. Whoever has no `live`
    settings gets those that the jobs use, and must follow them.
    """
    live = live or LiveSettings(settings)
    await live.refresh(database)
    jobs = settings.jobs
    options = WorkerOptions(
        concurrency=concurrency,
        prefetch=timedelta(milliseconds=settings.worker.prefetch_ms),
        lease=timedelta(seconds=jobs.lease_s),
        heartbeat=timedelta(seconds=jobs.heartbeat_s),
        drain=timedelta(seconds=jobs.drain_s),
        poll=timedelta(seconds=jobs.poll_s),
    )
    keep = {
        "completed": timedelta(days=jobs.keep_completed_days),
        "failed": timedelta(days=jobs.keep_failed_days),
        "canceled": timedelta(days=jobs.keep_canceled_days),
    }
    clock = clock_of(database)
    await release_waiting(database, clock())
    model = configured_model(
        database,
        settings.model,
        clock,
        zone=ZoneInfo(settings.backfill.time_zone),
        day_zone=ZoneInfo(settings.time_zone),
    )
    adviser = None if model is None else _adviser(settings, database, model)
    approvals = ApprovalChannels(settings, database)
    senders = SenderWatch(settings, database)
    channels = approvals.channels
    handlers = job_handlers(settings, database, mailboxes, adviser, channels)
    handlers["sender.notify"] = senders.handler()

    async def renew(changed: Settings) -> None:
        if model is not None and model.limit(changed.model, ZoneInfo(changed.time_zone)):
            await release_waiting(database, clock())
        handlers.update(renewed_handlers(changed, database, adviser, channels))

    await live.keep_up(renew)
    worker = Worker(database, CATALOGUE, handlers, options, clock)
    leadership = Leadership(
        database,
        Scheduler(database, CATALOGUE, RECURRING, clock, mailboxes.ids_in_use),
        Rescuer(database, clock),
        Pruner(database, keep, clock),
        poll=options.poll,
        clock=clock,
        longest=_longest(settings),
        counter=JobCounter(database, clock),
    )
    chores = maintenance_tasks(settings.safety.hourly_cap)
    by_minute: dict[str, Chore] = {
        "backfill.connectors_called": lambda now: call_connectors(new_id(), now),
        "model.shares_forgotten": forget_shares,
    }
    watch = restore_watch(settings, database, mailboxes)
    await watch.observe()
    smtp = SmtpOnDemand(settings, database)
    queue_watch = QueueWatch(database, settings.outbound.max_queue, clock)
    sending = sender(settings, database, mailboxes, watch, pace, smtp.road(), queue_watch, tally).run()
    limits = (settings.outbound.max_queue, settings.outbound.slots)
    figures = OutboundGauges(database, gauges or Gauges(), lambda: leadership.leads, *limits, clock)
    async with (
        smtp,
        approvals,
        senders,
        background(senders.scoring().run(), stop),
        background(run_maintenance(database, chores, clock=clock), stop),
        background(run_maintenance(database, by_minute, EVERY_MINUTE, clock), stop),
        background(queue_watch.run(), stop),
        background(sending, stop),
        background(figures.run(), stop),
        background(watch.run(), stop),
        asyncio.TaskGroup() as group,
    ):
        group.create_task(worker.run())
        group.create_task(leadership.run())
        yield live
        worker.stop()
        leadership.stop()
    if model is not None:
        await model.close()


def _longest(settings: Settings) -> Longest:
    """Return the longest times that the queues allow: anything that ends later comes from a wrong clock."""
    queues = queues_of(settings.queues, settings.routes)
    policies = [queues[name] for name in queues.names]
    texts = [each.same_text_within for each in policies if each.same_text_within is not None]
    leases = {each.queue: each.lease for each in policies}
    return Longest(max(leases.values()), leases, same_text=max(texts, default=timedelta(0)))


def _adviser(settings: Settings, database: Database, model: Model) -> ModelAdviser:
    return ModelAdviser(database, model, settings.model.mode, frozenset({settings.gmail.snooze_label}))
