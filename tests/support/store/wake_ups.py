"""Whom each verb wakes: those who wait for work, and the page, hear of a change at once and need not look for it.

A verb that is not in the table wakes nobody. What it tells is said after its commit, and nothing when it fails.
"""

import asyncio

from postroom.store.engine.database import Database, Notify, Script, transaction
from support.patience import PATIENCE_S

CHANNELS = (
    *(
        "accounts",
        "actions",
        "backfill",
        "connector_answers",
        "connector_requests",
        "departures",
        "inbox",
        "jobs",
        "outbound",
    ),
    *("job_ends", "pauses", "restores", "rules", "scheduler"),
)
_LAST = "wake-ups"
_WOKEN: dict[tuple[str, ...], tuple[str, ...]] = {
    ("accounts",): ("act_from", "lose_consent", "refuse_sign_in"),
    ("accounts", "pauses"): ("pause_account",),
    ("accounts", "pauses", "rules"): ("begin_paused",),
    ("accounts", "jobs"): ("connect_account", "resume_account"),
    ("accounts", "jobs", "pauses"): ("remove_account",),
    ("actions",): (
        "revoke_token",
        "apply_changes",
        "cancel_hiding",
        "complete_action",
        "end_woken",
        "end_orphans",
        "expire_approvals",
        "fail_action",
        "record_mistake",
        "refuse_action",
        "reject_action",
    ),
    ("actions", "jobs"): (
        "approve_action",
        "ask_for_action",
        "ask_once",
        "complete_undo",
        "record_decision",
        "take_back_rejection",
    ),
    ("actions", "outbound"): (
        "bounce",
        "cancel_mail",
        "deliver",
        "refuse_mail",
        "resolve_mail",
        "settle_restored",
        "withdraw_mail",
    ),
    ("backfill",): (
        "cancel_backfill",
        "continue_capped",
        "hand_out",
        "pause_backfill",
        "record_progress",
        "resume_backfill",
    ),
    ("backfill", "jobs"): ("create_backfill",),
    ("connector_answers",): ("end_request",),
    ("connector_answers", "connector_requests"): ("ask_connector",),
    ("connector_requests",): ("give_back_requests",),
    ("departures",): ("register_writer", "retire_writer"),
    ("inbox",): ("accept_many", "give_back", "nack", "replay", "return_expired"),
    ("job_ends",): ("cancel_claimed", "fail"),
    ("jobs",): (
        "ask_for_messages",
        "ask_for_sync",
        "ask_to_close",
        "close_lease",
        "disown",
        "enqueue_decisions",
        "enqueue_plain",
        "call_connectors",
        "continue_undos",
        "request_undo",
        "enqueue_undos",
        "fire",
        "hand_over_action",
        "keep_pre_image",
        "release",
        "release_capped",
        "rescue",
        "retry_for",
        "change_many",
        "retry_job",
        "store_messages",
        "take_slot",
        "unpark",
        "wake_due",
        "wake_overdue_snoozes",
    ),
    ("jobs", "pauses"): ("resume",),
    ("jobs", "scheduler"): ("enqueue_many",),
    ("jobs", "outbound"): ("throttle_for_score",),
    ("outbound",): (
        "admit_mail",
        "defer",
        "disable_sender",
        "doubt",
        "enable_sender",
        "give_back_mail",
        "hasten_mail",
        "pause_destination",
        "pause_tenant",
        "queue_notice",
        "record_bounces",
        "record_outcomes",
        "release_for_score",
        "release_mail",
        "release_mail_ahead",
        "release_sender",
        "resend_unknown",
        "resume_destination",
        "resume_tenant",
        "submit_mails",
        "cancel_submission",
        "throttle_sender",
        "weigh_tenant",
    ),
    ("pauses",): ("pause", "protect"),
    ("restores",): ("mark_restored", "observe_timeline", "suspect_restore"),
    ("rules",): (
        "accept_proposal",
        "apply_plan",
        "confirm_rule",
        "disable_rule",
        "dismiss_proposal",
        "edit_rule",
        "keep_rules",
        "move_rule",
        "remove_rule",
        "switch_rule",
    ),
    ("scheduler",): ("retry_later",),
}
WOKEN = {verb: frozenset(channels) for channels, verbs in _WOKEN.items() for verb in verbs}


class Ears:
    """The channels on which something was said."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last = asyncio.Event()
        self._heard: set[str] = set()
        for channel in CHANNELS:
            database.subscribe(channel, lambda _message, channel=channel: self._heard.add(channel))
        database.subscribe(_LAST, lambda _message: self._last.set())

    async def heard(self) -> frozenset[str]:
        """All that was said before: what comes after it is heard after it."""
        await self._database.run(_say_last())
        await asyncio.wait_for(self._last.wait(), PATIENCE_S)
        return frozenset(self._heard)


@transaction
def _say_last() -> Script[None]:
    yield Notify(_LAST, "")
