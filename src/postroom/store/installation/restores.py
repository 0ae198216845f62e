"""After a restore: what was sent since the backup is looked up in the mailbox; a person settles what remains open.

    require checks (timeline) ──► pending_checks ──► (the mailbox's sent mail is read) ──► settle_restored
                                                                                             │
    each mail that waited:   found in sent mail ──► delivered      still a draft ──► queued  │  neither ──► unknown
    each mail admitted later: settled_at_admission, from what was found then ◄───────────────┘

While a check is pending no mail of that account is leased (`lease_mail`), and so none leaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.lifecycle import AccountState, DeliveryState
from postroom.core.mail.carrier import MarkedDraft, SentMail
from postroom.core.mail.restores import Doubt, RestoredWindow, SendRequest, doubt_about
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.outbound.outbound_moves import CHANNEL, completing, delivering, doubting, ending_unheld, returning
from postroom.store.outbound.outbound_turns import leaving
from postroom.store.people.audit import Signature, auditing

# Clocks differ, so sent mail is searched from this long before the backup.
MARGIN = timedelta(hours=1)

ASK = (
    "the database was restored from a backup of {since:%Y-%m-%d %H:%M} UTC, and this mail may have been sent since; "
    "sent mail does not show it; look in the mailbox, then run `postroom outbound resolve {id} --sent` or "
    "`--not-sent`, or `postroom outbound cancel {id}`"
)


class PendingCheck(NamedTuple):
    """A mailbox to compare with the restored database."""

    account_id: UUID
    account_state: AccountState
    epoch: int
    window: RestoredWindow


@dataclass(slots=True)
class Settled:
    """The result of a check."""

    already_sent: int = 0
    to_send: int = 0
    to_ask: int = 0
    found: int = 0
    """Sent mail that the database did not know."""


@query
def pending_checks() -> Script[list[PendingCheck]]:
    return read_rows(PendingCheck, (yield sql("select_pending_checks")))


@query
def unknown_mail(ids: Sequence[UUID]) -> Script[list[UUID]]:
    """The mails among these that the database does not know."""
    found: list[UUID] = []
    for id in ids:
        if not (yield sql("select_known_send", id)):
            found.append(id)
    return found


@transaction
def settle_restored(
    check: PendingCheck,
    sent: Sequence[SentMail],
    drafts: Sequence[MarkedDraft],
    lease_token: UUID,
    signed: Signature,
    now: datetime,
) -> Script[Settled | None]:
    """Compare the database with the mailbox; after this, mail may leave it again. None if it was done before."""
    standing = read_first(_Check, (yield sql("lock_restore_check", check.account_id)))
    if standing is None or standing.epoch != check.epoch or standing.checked_at is not None:
        return None
    settled = Settled()
    by_delivery = {each.delivery_id: each for each in sent}
    for each in sent:
        settled.found += yield from _remember(check.account_id, each)
    draft_of = {each.delivery_id: each for each in drafts}
    for waiting in read_rows(OpenMail, (yield sql("select_open_mail", check.account_id))):
        yield from _settle(waiting, check, by_delivery, draft_of, lease_token, settled, now)
    yield sql("finish_restore_check", check.account_id, now)
    counts = {name: getattr(settled, name) for name in ("already_sent", "to_send", "to_ask", "found")}
    yield from auditing(signed.under("database.compared", "account", str(check.account_id), after=counts), now)
    yield Notify(CHANNEL, "restored")
    return settled


class _Check(NamedTuple):
    epoch: int
    window: RestoredWindow
    checked_at: datetime | None


class OpenMail(NamedTuple):
    """A mail that has not ended."""

    id: UUID
    action_id: UUID | None
    state: DeliveryState
    source_key: str | None
    asked_at: datetime


def _remember(account_id: UUID, sent: SentMail) -> Script[int]:
    """Keep a mail that this database did not send, and whom it answered. Returns how many were new."""
    if (yield sql("select_mail_state", sent.delivery_id)):
        return 0
    yield sql("insert_restored_send", account_id, sent.id, sent.delivery_id, sent.source_key, sent.sent_at)
    if sent.answered is not None:
        known = yield sql("select_auto_reply", account_id, sent.answered)
        if not known or as_time(known[0][1]) < sent.sent_at:
            yield sql("upsert_auto_reply", account_id, sent.answered, sent.delivery_id, sent.sent_at)
    return 1


def _settle(
    waiting: OpenMail,
    check: PendingCheck,
    by_delivery: Mapping[UUID, SentMail],
    draft_of: Mapping[UUID, MarkedDraft],
    lease_token: UUID,
    settled: Settled,
    now: datetime,
) -> Script[None]:
    sent = by_delivery.get(waiting.id)
    sent_id = sent.id if sent is not None else None
    draft = draft_of.get(waiting.id)
    if sent_id is None and draft is None:
        sent_id = yield from _take_restored_send(check.account_id, waiting.source_key, waiting.id)
    if sent_id is not None:
        settled.already_sent += 1
        yield from _record_delivery(waiting, sent_id, lease_token, now)
    elif waiting.state == "unknown":
        settled.to_ask += 1
    elif draft is None and (yield from _doubt(waiting, check.window)) is Doubt.LIKELY:
        settled.to_ask += 1
        yield from _asking(waiting, check.window, lease_token, now)
    else:
        settled.to_send += 1
        found = None if draft is None else (draft.id, draft.message_id)
        yield from returning((yield from _taking_over(waiting, lease_token, now)), found, now)


def _taking_over(waiting: OpenMail, lease_token: UUID, now: datetime) -> Script[DeliveryLease]:
    yield from leaving(waiting.id)
    yield sql("take_over_mail", waiting.id, lease_token, now)
    return DeliveryLease(waiting.id, lease_token)


def _record_delivery(waiting: OpenMail, sent_message_id: str, lease_token: UUID, now: datetime) -> Script[None]:
    if waiting.state == "unknown":
        yield from ending_unheld(waiting.id, "sent", sent_message_id, None, now)
        yield from completing(waiting.action_id, sent_message_id, now)
    else:
        yield from delivering((yield from _taking_over(waiting, lease_token, now)), sent_message_id, now)


def _asking(waiting: OpenMail, window: RestoredWindow, lease_token: UUID, now: datetime) -> Script[None]:
    reason = ASK.format(since=window.since, id=waiting.id)
    yield from doubting((yield from _taking_over(waiting, lease_token, now)), reason, now)


def _take_restored_send(account_id: UUID, source_key: str | None, delivery_id: UUID) -> Script[str | None]:
    """Find this mail in sent mail from before the restore, and settle it, so that it counts for no other."""
    if source_key is None:
        return None
    for (sent_message_id,) in (yield sql("select_restored_send", account_id, source_key)):
        yield sql("settle_restored_send", account_id, sent_message_id, delivery_id)
        return sent_message_id
    return None


def sent_before_restore(account_id: UUID, source_key: str | None) -> Script[bool]:
    """Part of a transaction: whether sent mail from before the restore holds this mail, not yet settled."""
    return source_key is not None and bool((yield sql("select_restored_send", account_id, source_key)))


def _doubt(mail: OpenMail, window: RestoredWindow) -> Script[Doubt]:
    """A mail that no action asked for was somebody's own request."""
    if mail.action_id is None:
        return doubt_about(SendRequest("user", mail.asked_at, True, mail.asked_at), window)
    request = read_first(SendRequest, (yield sql("select_send_request", mail.action_id)))
    return Doubt.LIKELY if request is None else doubt_about(request, window)


def settling_at_admission(mail: OpenMail, account_id: UUID, lease_token: UUID, now: datetime) -> Script[None]:
    """Part of the transaction that admits a mail: one that was sent before the restore is not sent again.

    While the mailbox has not been compared yet, the mail waits, and is settled then.
    """
    check = read_first(_Check, (yield sql("select_restore_check", account_id)))
    if check is None or check.checked_at is None:
        return
    doubt = yield from _doubt(mail, check.window)
    if doubt is Doubt.NONE:
        return
    sent_id = yield from _take_restored_send(account_id, mail.source_key, mail.id)
    if sent_id is not None:
        yield from _record_delivery(mail, sent_id, lease_token, now)
    elif doubt is Doubt.LIKELY:
        yield from _asking(mail, check.window, lease_token, now)
