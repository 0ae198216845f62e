"""The sentences in which a person at a terminal reads the log.

Events without a sentence are routine: they are in the JSON log only. Every warning and error has one, which says what
happens next or what to do. The same trouble is said once, until something is well again or a while has passed.
"""

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from postroom.core.counted import counted

Sentence: TypeAlias = str | Callable[[Mapping[str, Any]], str]

SAID_AGAIN_S = 600.0
DETAILS = "POSTROOM_LOG_FORMAT=console shows every event."

_DATABASE = "The database does not answer. Postroom tries again by itself; `postroom doctor` looks at the cause."
_BUG = "Something failed that should not ({error}). Postroom goes on. Please report it, with the log: {details}"


def _later(what: str) -> str:
    return f"{what} failed. Postroom tries again by itself."


def _number(name: str, noun: str, text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda event: text.format(counted(int(event.get(name, 0)), noun))


# What goes well, and what a person did.
GOOD: Mapping[str, Sentence] = {
    "upgrade.backed_up": "Backed up before the upgrade from {since}: {file}",
    "upgrade.waiting": "Waiting for process {process}, which upgrades the database. Ctrl-C stops this one only.",
    "upgrade.applied": "The database was upgraded from {since}.",
    "worker.started": "Started.",
    "worker.stopped": _number("completed", "job", "Stopped. {} done."),
    "connector.connected": "Connected to the mailbox. New mail is read as it arrives.",
    "connector.looked_back": _number("messages", "message", "Found {} in the mailbox so far."),
    "dispatcher.first_mail": "The first mail is in. `postroom mail list` shows it.",
    "submission.listening": "Senders can submit mail over SMTP.",
    "telemetry.collector_back": "The telemetry collector answers again.",
    "telemetry.metrics_served": "Metrics are at http://{address}/metrics",
    "submission.certificate_renewed": "The certificate for submission was renewed.",
    "web.certificate_renewed": "The certificate of the pages was renewed.",
    "retention.pruned": _number("messages", "message", "Removed the stored content of {} past its time."),
    "backfill.job_stopped": "A backfill has stopped ({status}). `postroom backfill list` shows it.",
    "backfill.continued": "A backfill continues: a new day has begun.",
    "sender.throttle_ended": "A sender is no longer throttled.",
}

# What needs a person, or what a person would wonder about.
TROUBLE: Mapping[str, Sentence] = {
    # Mailboxes
    "account.sign_in_refused": "The mail server refused the sign-in of a mailbox. `postroom account list` says which, "
    "and what to do.",
    "account.needs_consent": "Google no longer lets Postroom into a mailbox. `postroom account list` says which; "
    "connect it again.",
    "connector.waiting": "The mailbox cannot be read for now. Postroom tries again by itself; no mail is lost.",
    "connector.folder_left_out": "The mail server cannot open one folder. It is tried again in each round.",
    "connector.watch_failed": "Google does not announce new mail for now. Postroom looks by itself every few minutes.",
    "connector.no_hints": "Google does not announce new mail for now. Postroom looks by itself.",
    "connector.search_failed": _later("A search in the mailbox"),
    "connector.endless_pages": "The mailbox lists its mail without an end. Postroom read all it could; new mail is "
    "found as it arrives.",
    "connector.reading_list_lost": "The list of mail still to be read was lost. Postroom reads the mailbox again.",
    "connector.history_expired": "Postroom was away for long. It reads the newest mail again; nothing is done twice.",
    "connector.send_as_unknown": "The addresses that this account sends from could not be read. It is tried again.",
    "connector.report_refused": "A delivery report could not be used.",
    "connector.report_unreadable": "A delivery report could not be read.",
    "connector.index_damaged": "The index of a mailbox was damaged. It was put aside, and is made again.",
    "connector.message_set_aside": "The mailbox does not return a message for now. It is tried again later.",
    "connector.message_refused": "A message cannot be read and is left in the mailbox. "
    "`postroom connector not-ingested` lists such messages.",
    "connector.correspondents_refused": "Contacts found in your sent mail could not be stored. {details}",
    "connector.sent_mail_waits": _later("Reading your sent mail"),
    "connector.changes_refused": "Changes of labels could not be stored. {details}",
    "connector.not_refreshed": _later("Reading the connector's settings"),
    "connector.heartbeat_failed": "The connector cannot reach Postroom. It tries again by itself.",
    "connector.requests_failed": "The connector cannot reach Postroom. It tries again by itself.",
    "connector.request_not_answered": "A search in the mailbox got no answer in time.",
    "connector.request_broke": _BUG,
    "connector.requests_not_given_back": _DATABASE,
    "mailboxes.interrupted": _DATABASE,
    "imap.draft_not_given_back": "A draft could not be put back. It is tried again with the mail.",
    "imap.copy_not_filed": "A mail was sent, but its copy could not be put into the sent folder.",
    "labels.watch_interrupted": _DATABASE,
    "rules.disabled_for_labels": "A label was deleted in the mailbox, so the rules that use it are off. "
    "`postroom rules list` shows them.",
    "rule.disabled": "A rule cannot be used any more and is off. `postroom rules list` shows it.",
    "snoozes.forgotten": "Snoozed mail that was due came back late.",
    "backfill.stopped": "A backfill has stopped: {error} `postroom backfill list` shows it.",
    "backfill.not_reported": _later("Reporting on a backfill"),
    "backfill.waiting": "A backfill waits for the mailbox and continues by itself.",
    # Work
    "job.failed": "A job failed for good. `postroom jobs list --state failed` says why; `postroom jobs retry` "
    "tries it again.",
    "jobs.leases_from_the_future": "The clock of this computer was set back. Work that was begun is taken up again.",
    "jobs.rescued": "Work that another process left undone is taken up again.",
    "leader.interrupted": _DATABASE,
    "leader.clock_was_ahead": "The clock of this computer was ahead and is right again. Waiting work was moved.",
    "worker.claim_failed": _DATABASE,
    "worker.end_not_written": _DATABASE,
    "worker.heartbeat_failed": _DATABASE,
    "worker.lease_lost": "The database was away for too long. Work that was begun is done again, never twice at the "
    "mailbox.",
    "actions.chore_failed": _DATABASE,
    "long_task.failed": _BUG,
    "retention.not_approved": "The retention time would remove stored mail. Nothing is removed until you agree with "
    "`postroom retention enable`.",
    "gate.interrupted": _DATABASE,
    "settings.not_read": _DATABASE,
    # Queues
    "dispatcher.interrupted": _DATABASE,
    "dispatcher.lease_lost": _DATABASE,
    "dispatcher.message_left": _DATABASE,
    "dispatcher.message_failed": "A message could not be stored. Postroom tries again, then sets it aside.",
    "queue.strays_adopted": "Mail of a queue that was removed from the settings is in the queue {queue} now.",
    "queue.not_in_settings": "The queue {queue} is no longer in the settings. Its messages are kept but not delivered.",
    "queue.not_given_back": _DATABASE,
    "keeper.interrupted": _DATABASE,
    "redis.entry_refused": "An entry of the Redis stream could not be used. It was moved to {moved_to}.",
    "redis.waiting": "Redis or Postroom does not answer. The connector tries again by itself.",
    # Outgoing mail
    "outbound.interrupted": _DATABASE,
    "outbound.sent_again": "A mail whose delivery was not confirmed is sent again, as your settings ask.",
    "outbound.broken": _BUG,
    "outbound.unknown": "The server didn't confirm the delivery of a mail. `postroom outbound list` shows it; you "
    "decide whether to send it again.",
    "outbound.bounced": "An outgoing mail was not delivered. `postroom outbound list` says why.",
    "outbound.figures_not_shown": _DATABASE,
    "outbound.queue_not_seen": _DATABASE,
    "senders.not_scored": _DATABASE,
    "demo.story_ended_early": "The story of the demo ended early. `postroom demo --fresh` tells it again.",
    "sender.throttled": "A sender is throttled, since too much of its mail fails. `postroom sender list` shows it.",
    "smtp.broken": _BUG,
    "smtp.mta_sts": "{destination} names the servers that may take its mail (MTA-STS), and others answered.",
    "submission.failed": _BUG,
    "submission.no_local_sender": "A program signed in for submission under a name that no sender has. "
    "`postroom sender list` lists them.",
    "submission.certificate_expired": "The certificate for submission has expired. Replace its files; Postroom "
    "notices.",
    "submission.certificate_kept": "The new certificate for submission cannot be used, so the old one stays: {reason}",
    "web.certificate_expired": "The certificate of the pages has expired. Replace its files; Postroom notices.",
    "web.certificate_kept": "The new certificate of the pages cannot be used, so the old one stays: {reason}",
    "database.promoted": "Another database server has taken over. Postroom compares sent mail before it sends more.",
    "database.restored": "The database was restored. Postroom compares sent mail before it sends more.",
    "database.replaced": "The database file was replaced while Postroom ran. Stop Postroom and start it again.",
    "restore.interrupted": _DATABASE,
    "restore.mailbox_unread": "A mailbox could not be compared after the restore. It is tried again.",
    "restore.compared": "Sent mail was compared after the restore. `postroom outbound list` shows what is unclear.",
    # Approvals and the model
    "approval.notice_left": "A notice about an approval could not be withdrawn. It shows an old state.",
    "approval.channel_broken": "Approvals cannot be sent to {channel}. Answer them with `postroom approvals list`.",
    "approval.answer_not_taken": _DATABASE,
    "approval.press_failed": "An answer from Discord was not carried out. Answer with `postroom approvals`.",
    "approval.press_broken": _BUG,
    "approval.press_refused": "Someone who may not approve pressed a button in Discord. Nothing was done.",
    "approval.refusal_not_kept": _DATABASE,
    "discord.token_refused": "Discord refused the bot's token. Check `discord.token`, then start Postroom again.",
    "discord.disconnected": "Discord does not answer. Postroom connects again by itself.",
    "discord.press_unanswered": "Discord did not accept an answer. Answer with `postroom approvals`.",
    # Pages and programs
    "mcp.nobody_known": _DATABASE,
    "token.not_read": _DATABASE,
    "token_use.not_noted": _DATABASE,
    "api.failed": _BUG,
    "tool.failed": _BUG,
    "ingest.failed": _BUG,
    "messages.failed": _BUG,
    "sign_in.unavailable": _DATABASE,
    "sign_in.session_not_read": _DATABASE,
    "session.use_not_noted": _DATABASE,
    "hook.keys_unavailable": "Google's keys for push messages cannot be read. Postroom looks for mail by itself.",
    "hook.not_taken": _DATABASE,
    "dashboard.page_failed": _DATABASE,
    "dashboard.stalled": _DATABASE,
    "access.refusal_not_audited": _DATABASE,
    "forms.secret_not_kept": "Forms that are open now expire when Postroom stops: let it write to its data folder.",
    "http.refused": "Too many connections at once: some were refused.",
    "http.unprotected_bind": "Others on the network can open the pages on {host}, and their connection is not "
    "encrypted. Set `web.tls_certificate` and `web.tls_key`.",
    "files.closed_to_others": "Other users could read {path}. Its mode is {mode} now.",
    # Telemetry
    "telemetry.not_flushed": "The last measurements could not be sent to the telemetry collector.",
    "telemetry.collector_away": "The telemetry collector does not answer. Measurements are kept for a while.",
}
SENTENCES: Mapping[str, Sentence] = {**GOOD, **TROUBLE}

_PLACE = re.compile(r'File "[^"]*?([\w-]+\.py)", line (\d+)')


class Narrator:
    """Renders an event as a sentence; as an empty text if it is routine or was just said."""

    def __init__(self, one_line: Callable[[str], str]) -> None:
        self._one_line = one_line
        self._said: dict[str, float] = {}

    def __call__(self, _logger: object, _method: str, event: Mapping[str, Any]) -> str:
        level, name = event.get("level", ""), str(event.get("event", ""))
        sentence = SENTENCES.get(name)
        if sentence is None and level in ("debug", "info"):
            return ""
        text = _filled(sentence, event) if sentence is not None else _unknown(name, event)
        if level in ("debug", "info"):
            self._said.clear()
        elif self._was_just_said(text):
            return ""
        time_of_day = _local_time(str(event.get("timestamp", "")))
        return self._one_line(f"{time_of_day}  {text}{_traceback(event)}")

    def _was_just_said(self, text: str) -> bool:
        now = time.monotonic()
        last = self._said.get(text)
        if last is not None and now - last < SAID_AGAIN_S:
            return True
        self._said = {each: at for each, at in self._said.items() if now - at < SAID_AGAIN_S} | {text: now}
        return False


def _filled(sentence: Sentence, event: Mapping[str, Any]) -> str:
    if not isinstance(sentence, str):
        return sentence(event)
    return sentence.format_map(_Fields({"details": DETAILS, **event}))


class _Fields(dict[str, Any]):
    """A sentence is said even if one of its fields is missing."""

    def __missing__(self, name: str) -> str:
        return "unknown"


def _unknown(name: str, event: Mapping[str, Any]) -> str:
    """A warning of a library, or of a part that has no sentence yet."""
    return f"{event.get('logger') or 'postroom'}: {name}"


def _traceback(event: Mapping[str, Any]) -> str:
    """The error itself and its place, instead of the pages of its traceback."""
    text = str(event.get("exception") or "").strip()
    if not text:
        return ""
    error = next((line for line in reversed(text.splitlines()) if line and not line[0].isspace()), text)
    places = _PLACE.findall(text)
    where = f" in {places[-1][0]}, line {places[-1][1]}" if places else ""
    return f" ({error}{where}). {DETAILS}"


def _local_time(timestamp: str) -> str:
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return timestamp[11:19]
