"""Reports about mail that we sent, from the outside: a recipient that was `sent` has bounced after all, or complains.

A report is believed as far as it names a mail of ours, by our mark or its Message-ID, and a recipient of that mail. One
that was found in a mailbox (`origin`) must concern mail whose reports come there, and its writer must be able to know
(`core/outbound/report_origins.py`). Whatever it says counts once for each mail and recipient.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.lifecycle import DELIVERY, DeliveryState, RecipientState
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.report_origins import ReportOrigin, server_in
from postroom.core.outbound.reports import Original
from postroom.core.outbound.strikes import USUAL_STRIKES, StrikeRule
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.outbound.outbound import CHANNEL
from postroom.store.outbound.outbound_recipients import derived, ending
from postroom.store.outbound.outbound_results import CountedOutcome, counting_outcomes
from postroom.store.outbound.sender_counts import SenderCount, counting
from postroom.store.outbound.suppressions import Refusal, striking, suppressing

MOST_MAILS = 10
"""A Message-ID is chosen by whoever sends; a report concerns so many mails at most, of so many that have it."""
MOST_WITH_ID = 100


class Bounce(NamedTuple):
    """The part of a report about one recipient. `arrived` is for one that the mail has reached.

    `strikes` says that its refusal counts against the address.
    """

    address: str
    reply: str
    enhanced: str | None
    bounce_class: BounceClass | None
    arrived: bool = False
    strikes: bool = False


class ReportEffect(NamedTuple):
    """How many recipients it has changed, and about how many it was not believed."""

    recorded: int = 0
    doubted: int = 0


class _Mail(NamedTuple):
    id: UUID
    tenant: str
    sender_id: int
    state: DeliveryState
    account_id: UUID | None
    envelope_sender: str


class _Recipient(NamedTuple):
    position: int
    address: str
    state: RecipientState
    last_reply: str | None

    @property
    def name(self) -> str:
        return canonical(self.address) or self.address


@transaction
def record_bounces(
    original: Original,
    bounces: Sequence[Bounce],
    now: datetime,
    origin: ReportOrigin | None = None,
    rule: StrikeRule = USUAL_STRIKES,
) -> Script[ReportEffect]:
    """Move recipients that bounced later to `bounced`, and those that were unknown to what is known now."""
    recorded = doubted = 0
    said = {canonical(each.address) or each.address: each for each in bounces}
    for mail in (yield from _mails(original, origin)):
        for recipient in (yield from _recipients(mail.id)):
            bounce = said.get(recipient.name)
            if bounce is None or not _changes(mail, recipient, bounce):
                continue
            if not _is_believed(origin, mail, recipient):
                doubted += 1
                continue
            yield from _moving(mail, recipient, bounce, rule, now)
            recorded += 1
        yield from _correcting(mail, now)
    return ReportEffect(recorded, doubted)


def _changes(mail: _Mail, recipient: _Recipient, bounce: Bounce) -> bool:
    """Whether there is something to learn. Mail of unknown fate that left through a mailbox is looked for there."""
    if recipient.state == "unknown":
        return mail.account_id is None
    return recipient.state == "sent" and not bounce.arrived


def _moving(mail: _Mail, recipient: _Recipient, bounce: Bounce, rule: StrikeRule, now: datetime) -> Script[None]:
    state: RecipientState = "sent" if bounce.arrived else "bounced"
    why = (bounce.reply, bounce.enhanced, bounce.bounce_class)
    yield sql("correct_recipient", mail.id, recipient.position, state, *why, now)
    yield from counting([SenderCount(mail.sender_id, 0, int(bounce.arrived), int(not bounce.arrived))], now)
    yield from counting_outcomes([CountedOutcome(recipient.address, state, bounce.bounce_class)], mail.id, now)
    if not bounce.arrived and bounce.bounce_class is BounceClass.HARD:
        yield from suppressing(mail.tenant, recipient.address, "bounce", bounce.reply, mail.id, now)
    elif not bounce.arrived and bounce.strikes:
        yield from striking(Refusal(mail.tenant, recipient.address, bounce.reply, mail.id), rule, now)


@transaction
def record_complaint(
    original: Original, kind: str, recipients: Iterable[str], now: datetime, origin: ReportOrigin | None = None
) -> Script[ReportEffect]:
    """Suppress whoever complains for the tenant of the mail, and count it. A mail to one recipient names it itself."""
    recorded = doubted = 0
    named = {canonical(each) or each for each in recipients}
    for mail in (yield from _mails(original, origin)):
        ours = yield from _recipients(mail.id)
        those = [each for each in ours if each.name in named] or (ours if len(ours) == 1 and not named else [])
        for recipient in those:
            if recipient.state not in ("sent", "unknown"):
                continue
            if not _is_believed(origin, mail, recipient):
                doubted += 1
            elif (yield sql("note_complaint", mail.id, recipient.position, now)):
                yield from suppressing(mail.tenant, recipient.address, "complaint", kind, mail.id, now)
                yield from counting([SenderCount(mail.sender_id, 0, 0, 0, 1)], now)
                recorded += 1
    return ReportEffect(recorded, doubted)


def _is_believed(origin: ReportOrigin | None, mail: _Mail, recipient: _Recipient) -> bool:
    if origin is None:
        return True
    through_mailbox = mail.account_id is not None
    return origin.speaks_for(recipient.name, server_in(recipient.last_reply), through_mailbox=through_mailbox)


def _mails(original: Original, origin: ReportOrigin | None) -> Script[list[_Mail]]:
    """The mails that the report is about, locked: by our mark, or else by the Message-ID."""
    if original.mark is not None:
        rows = yield sql("lock_marked_mail", original.mark)
    elif original.message_id:
        rows = yield sql("lock_mail_of_message", original.message_id, MOST_WITH_ID)
    else:
        return []
    found = read_rows(_Mail, rows)
    return [each for each in found if origin is None or origin.concerns(each.account_id, each.envelope_sender)][
        :MOST_MAILS
    ]


def _recipients(mail_id: UUID) -> Script[list[_Recipient]]:
    return read_rows(_Recipient, (yield sql("select_recipient_results", mail_id)))


def _correcting(mail: _Mail, now: datetime) -> Script[None]:
    state, error, _ = yield from derived(mail.id)
    if state == mail.state:
        return
    if mail.state == "unknown" and state in DELIVERY.terminal:
        yield sql("end_waiting_mail", mail.id, state, None, error, now)
        for action_id, *_ in (yield sql("select_mail_action", mail.id)):
            yield from ending(mail.id, None if action_id is None else as_uuid(action_id), state, error, now)
    else:
        yield sql("correct_mail_state", mail.id, state)
    yield Notify(CHANNEL, state)
