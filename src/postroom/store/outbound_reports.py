"""Reports about mail that we sent, from the outside: a recipient that was `sent` has bounced after all, or complains.

A report is believed as far as it names a mail of ours, by our mark or its Message-ID, and a recipient of that mail.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.lifecycle import DELIVERY, DeliveryState, RecipientState
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.reports import Original
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.outbound import CHANNEL
from postroom.store.outbound_recipients import derived, ending
from postroom.store.sender_counts import SenderCount, counting
from postroom.store.suppressions import suppressing

MOST_MAILS = 10
"""A Message-ID is chosen by whoever sends; a report concerns so many mails at most."""


class Bounce(NamedTuple):
    """What a report says about a recipient. `arrived` is for one that the mail has reached."""

    address: str
    reply: str
    enhanced: str | None
    bounce_class: BounceClass | None
    arrived: bool = False


class _Mail(NamedTuple):
    id: UUID
    tenant: str
    sender_id: int
    state: DeliveryState


class _Recipient(NamedTuple):
    position: int
    address: str
    state: RecipientState


@transaction
def record_bounces(original: Original, bounces: Sequence[Bounce], now: datetime) -> Script[int]:
    """Move recipients that bounced later to `bounced`, and those that were unknown to what is known now."""
    found = 0
    said = {canonical(each.address) or each.address: each for each in bounces}
    for mail in (yield from _mails(original)):
        for recipient in (yield from _recipients(mail.id)):
            bounce = said.get(canonical(recipient.address) or recipient.address)
            if bounce is None or recipient.state not in ("sent", "unknown"):
                continue
            if bounce.arrived and recipient.state == "sent":
                continue
            state: RecipientState = "sent" if bounce.arrived else "bounced"
            why = (bounce.reply, bounce.enhanced, bounce.bounce_class)
            yield sql("correct_recipient", mail.id, recipient.position, state, *why, now)
            count = SenderCount(mail.sender_id, 0, int(bounce.arrived), int(not bounce.arrived))
            yield from counting([count], now)
            if not bounce.arrived and bounce.bounce_class is BounceClass.HARD:
                yield from suppressing(mail.tenant, recipient.address, "bounce", bounce.reply, mail.id, now)
            found += 1
        yield from _correcting(mail, now)
    return found


@transaction
def record_complaint(original: Original, kind: str, recipients: Iterable[str], now: datetime) -> Script[int]:
    """Suppress whoever complains for the tenant of the mail, and count it. A mail to one recipient names it itself."""
    found = 0
    named = {canonical(each) or each for each in recipients}
    for mail in (yield from _mails(original)):
        ours = yield from _recipients(mail.id)
        those = [each for each in ours if (canonical(each.address) or each.address) in named]
        for recipient in those or (ours if len(ours) == 1 and not named else []):
            yield from suppressing(mail.tenant, recipient.address, "complaint", kind, mail.id, now)
            yield from counting([SenderCount(mail.sender_id, 0, 0, 0, 1)], now)
            found += 1
    return found


def _mails(original: Original) -> Script[list[_Mail]]:
    """The mails that the report is about, locked."""
    mark = None if original.mark is None else str(original.mark)
    return read_rows(_Mail, (yield sql("lock_reported_mail", mark, original.message_id, MOST_MAILS)))


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
