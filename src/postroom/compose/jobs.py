"""Compose the handler of each job type from the settings."""

from collections.abc import Sequence
from datetime import timedelta

from postroom.compose.mailboxes import Mailboxes
from postroom.core.jobs.types import CATALOGUE
from postroom.core.outbound.lanes import LanePolicy
from postroom.core.tally import Tally
from postroom.jobs.run import Handler
from postroom.jobs.schedule import Recurring
from postroom.outbound.queue.delivery import OutboundDispatcher
from postroom.outbound.queue.meter import OutboundMeter
from postroom.outbound.queue.pace import Pace
from postroom.outbound.queue.queue_watch import QueueWatch
from postroom.outbound.queue.restored import RestorePace, RestoreWatch
from postroom.outbound.queue.smtp_delivery import SmtpRoad
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.engine.clock import clock_of
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import labels_job
from postroom.triage.act.approvals import Channel
from postroom.triage.act.executor import Executor
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.approval_notify import ApprovalNotify
from postroom.triage.handlers.asking import AskConnector
from postroom.triage.handlers.classify import Adviser, Classify
from postroom.triage.handlers.ingest_gmail import IngestGmail
from postroom.triage.handlers.labels_sync import LabelsSyncGmail
from postroom.triage.handlers.outbound_send import OutboundSend
from postroom.triage.handlers.retention_prune import RetentionPrune
from postroom.triage.handlers.snooze_sweep import SnoozeSweep
from postroom.triage.handlers.undo_action import UndoAction
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail

RECURRING = (
    Recurring("retention", "40 3 * * *", "retention.prune"),
    Recurring("labels", "20 * * * *", "labels.sync.gmail", each_account=labels_job),
)


def job_handlers(
    settings: Settings,
    database: Database,
    mailboxes: Mailboxes,
    adviser: Adviser | None,
    channels: Sequence[Channel] = (),
) -> dict[str, Handler]:
    clock = clock_of(database)
    executor = Executor(database, CATALOGUE, clock, settings.gmail.snooze_label)
    undoing = UndoService(database, CATALOGUE, clock)
    return {
        **renewed_handlers(settings, database, adviser, channels),
        "action.gmail": ActionGmail(executor, mailboxes.mailbox_under, settings.safety.hourly_cap),
        "undo.action": UndoAction(undoing, mailboxes.mailbox_under),
        "unsnooze.gmail": UnsnoozeGmail(database, mailboxes.mailbox_under, settings.gmail.snooze_label, clock),
        "labels.sync.gmail": LabelsSyncGmail(database, mailboxes.mailbox, clock),
        "history.sync.gmail": AskConnector("sync_now", database, clock),
        "ingest.gmail": IngestGmail(database, clock),
        "backfill.gmail": AskConnector("backfill", database, clock),
        "outbound.send": OutboundSend(
            database,
            mailboxes.mailbox,
            settings.safety.hourly_cap,
            timedelta(days=settings.outbound.auto_reply_days),
            settings.outbound.rollout,
            clock=clock,
        ),
    }


def renewed_handlers(
    settings: Settings, database: Database, adviser: Adviser | None, channels: Sequence[Channel] = ()
) -> dict[str, Handler]:
    """Return the handlers that are made of settings which may change meanwhile; they remember nothing of importance."""
    clock = clock_of(database)
    return {
        "classify": Classify(
            database,
            CATALOGUE,
            policy=policy_of(settings),
            adviser=adviser,
            approval_time=timedelta(hours=settings.safety.approval_hours),
            clock=clock,
        ),
        "retention.prune": RetentionPrune(database, settings.retention.policy, clock),
        "approval.notify": ApprovalNotify(database, channels, clock, settings.safety.approval_notices_per_hour),
    }


def restore_watch(settings: Settings, database: Database, mailboxes: Mailboxes) -> RestoreWatch:
    """Return what notices that the database was restored, and compares it with the mailboxes."""
    pace = RestorePace(settle=timedelta(seconds=settings.outbound.restore_settle_s))
    sweep = SnoozeSweep(database, mailboxes.mailbox, settings.gmail.snooze_label)
    return RestoreWatch(database, settings.data_dir, mailboxes.sent_mail, pace, wake_snoozed=sweep)


def sender(
    settings: Settings,
    database: Database,
    mailboxes: Mailboxes,
    watch: RestoreWatch,
    pace: Pace | None = None,
    smtp: SmtpRoad | None = None,
    queue_watch: QueueWatch | None = None,
    tally: Tally | None = None,
) -> OutboundDispatcher:
    """Return what delivers outgoing mail: through mailboxes, and by SMTP."""
    outbound = settings.outbound
    usual = Pace(give_up=timedelta(days=outbound.expire_days), at_once=outbound.concurrency)
    return OutboundDispatcher(
        database,
        mailboxes.carrier,
        pace or usual,
        before_sending=watch.before_sending,
        rollout=outbound.rollout,
        policy=LanePolicy.of(outbound.priority_multipliers, outbound.rollout.fair_share),
        smtp=smtp,
        watch=queue_watch,
        meter=OutboundMeter(tally),
        most=outbound.max_queue,
        clock=clock_of(database),
    )
