"""Mail that senders submit: admitted within their limits, and queued, in one transaction for many at once.

    submit_mails ──► queued ──► … as all outgoing mail (outbound.py)
                 └─► refused, with the reason; the others of the same transaction are accepted all the same

Callers that submit at the same time share a transaction, and so a commit: each is answered after it. A sender that uses
an idempotency key gets the first mail again if it sends the same request twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import Conflict, DailyLimitReached, NotAdmitted, NotFound
from postroom.core.lifecycle import DeliveryState
from postroom.core.outbound.limits import DailyLimits
from postroom.core.outbound.rollout import Rollout
from postroom.core.outbound.transport import MailOptions, MessageClass
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.codecs import as_uuid, rows_text, time_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.outbound.outbound import EVERYWHERE, RecipientView
from postroom.store.outbound.outbound_answers import Cancellation, cancel_mail
from postroom.store.outbound.outbound_signals import CHANNEL
from postroom.store.outbound.outbound_turns import ReadyMail, TurnPlace, joining
from postroom.store.outbound.senders import Sender, admitting, sender_by_id, standing
from postroom.store.people.audit import Signature


class SubmissionKey(NamedTuple):
    """The key under which a sender may repeat a request, and the hash of the request."""

    key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """A checked mail of a sender. An empty `envelope_sender` wants no reports."""

    id: UUID
    sender_id: int
    envelope_sender: str
    recipients: tuple[Recipient, ...]
    subject: str
    content: bytes = field(repr=False)
    message_class: MessageClass = "transactional"
    not_before: datetime | None = None
    options: MailOptions = field(default_factory=MailOptions)
    key: SubmissionKey | None = None
    message_id: str | None = None


class Accepted(NamedTuple):
    """`repeated`: the same request was accepted before, and `id` is that of its mail."""

    id: UUID
    repeated: bool = False


Answer = Accepted | NotAdmitted | Conflict
Answers = dict[int, Answer]
"""The answers by the places of the submissions among those of the transaction."""


@transaction
def submit_mails(
    news: Sequence[NewSubmission], now: datetime, limits: DailyLimits | None = None, rollout: Rollout = EVERYWHERE
) -> Script[list[Answer]]:
    """Accept mail of any number of senders. The answers are in the order of the submissions."""
    answers: Answers = {}
    yield from _claiming_keys(news, answers)
    by_sender: defaultdict[int, list[int]] = defaultdict(list)
    for place, new in enumerate(news):
        if place not in answers:
            by_sender[new.sender_id].append(place)
    senders: dict[int, Sender] = {}
    for sender_id, places in sorted(by_sender.items()):
        yield from _admitting_each(sender_id, [(place, news[place]) for place in places], answers, now, limits)
        if any(place not in answers for place in places):
            senders[sender_id] = yield from sender_by_id(sender_id)
    accepted = [new for place, new in enumerate(news) if place not in answers]
    yield from _releasing_keys(news, answers)
    if accepted:
        yield from _queueing(accepted, senders, now, rollout)
    return [answers.get(place, Accepted(new.id)) for place, new in enumerate(news)]


def _claiming_keys(news: Sequence[NewSubmission], answers: Answers) -> Script[None]:
    """Answer requests that were accepted before; the keys of the others are taken."""
    for place, new in enumerate(news):
        if new.key is None:
            continue
        if (yield sql("insert_submission_key", new.sender_id, *new.key, new.id)):
            continue
        ((mail_id, request_sha256),) = yield sql("select_submission_key", new.sender_id, new.key.key)
        if request_sha256 == new.key.request_sha256:
            answers[place] = Accepted(as_uuid(mail_id), repeated=True)
        else:
            problem = f"was used for another request, which was accepted as {as_uuid(mail_id)}"
            answers[place] = Conflict("idempotency_key", problem, "use a new key for each mail")


def _releasing_keys(news: Sequence[NewSubmission], answers: Answers) -> Script[None]:
    """Free the keys of what was refused: the same request may be accepted later. What repeats it is refused as well."""
    freed = {
        new.id: answer
        for place, new in enumerate(news)
        if new.key is not None and isinstance(answer := answers.get(place), NotAdmitted)
    }
    for id in freed:
        yield sql("delete_submission_key", id)
    for place, answer in answers.items():
        if isinstance(answer, Accepted) and answer.id in freed:
            answers[place] = freed[answer.id]


def _admitting_each(
    sender_id: int,
    news: Sequence[tuple[int, NewSubmission]],
    answers: Answers,
    now: datetime,
    limits: DailyLimits | None,
) -> Script[None]:
    """Count the recipients of all mails of a sender at once, or, where that exceeds a limit, mail by mail."""
    try:
        yield from admitting(sender_id, sum(len(new.recipients) for _, new in news), now, limits)
    except DailyLimitReached as refused:
        if len(news) == 1:
            answers[news[0][0]] = refused
            return
        for each in news:
            yield from _admitting_each(sender_id, [each], answers, now, limits)
    except NotAdmitted as refused:
        answers.update((place, refused) for place, _ in news)


def _queueing(
    news: Sequence[NewSubmission], senders: Mapping[int, Sender], now: datetime, rollout: Rollout
) -> Script[None]:
    places: dict[int, TurnPlace] = {}
    for sender_id, sender in senders.items():
        places[sender_id] = (yield from standing(sender, now)).standing(rollout)
    ids, now_text = [str(new.id) for new in news], time_text(now)
    due = [now_text if new.not_before is None else time_text(new.not_before) for new in news]
    rows = [
        _mail_row(new, id, senders[new.sender_id], at, at <= now_text)
        for new, id, at in zip(news, ids, due, strict=True)
    ]
    seqs = {str(id): seq for id, seq in (yield sql("insert_submissions", rows_text(rows), now))}
    rows = [row for new, id, at in zip(news, ids, due, strict=True) for row in _recipient_rows(new, id, at)]
    yield sql("insert_submitted_recipients", rows_text(rows), now)
    yield from _storing_contents(news, ids)
    ready = [(new, id) for new, id, at in zip(news, ids, due, strict=True) if at <= now_text]
    yield from joining([(places[new.sender_id], _ready(new, seqs[id])) for new, id in ready])
    yield Notify(CHANNEL, "queued")


def _storing_contents(news: Sequence[NewSubmission], ids: Sequence[str]) -> Script[None]:
    """Store all contents by one statement, as one value and where each begins in it."""
    start, rows = 1, list[tuple[object, ...]]()
    for new, id in zip(news, ids, strict=True):
        rows.append((id, start, len(new.content)))
        start += len(new.content)
    yield sql("insert_submitted_contents", rows_text(rows), b"".join(new.content for new in news))


def _ready(new: NewSubmission, seq: int) -> ReadyMail:
    return ReadyMail(new.id, seq, new.message_class == "bulk", len(new.recipients))


def _mail_row(new: NewSubmission, id: str, sender: Sender, due: str, is_due: bool) -> tuple[object, ...]:
    options = new.options
    whose = (sender.tenant, sender.domain, sender.username, sender.id)
    asked = (options.require_tls, options.smtputf8, options.body_8bit, options.envelope_id, options.return_full)
    return (
        id, *whose, new.message_class, new.envelope_sender, new.subject, is_due, due, *asked, new.message_id
    )  # fmt: skip


def _recipient_rows(new: NewSubmission, id: str, due: str) -> list[tuple[object, ...]]:
    return [
        (id, position, each.address, due, ",".join(each.notify), each.original)
        for position, each in enumerate(new.recipients)
    ]


@dataclass(frozen=True, slots=True)
class SubmissionView:
    """A submitted mail as its sender sees it."""

    id: UUID
    state: DeliveryState
    subject: str
    message_class: MessageClass
    not_before: datetime
    error: str | None
    created_at: datetime
    ended_at: datetime | None
    recipients: tuple[RecipientView, ...] = ()


@query
def load_submission(sender_id: int, id: UUID) -> Script[SubmissionView]:
    """A mail of this sender; the mail of others does not exist for it."""
    rows = yield sql("select_submission", sender_id, id)
    recipients = read_rows(RecipientView, (yield sql("select_outbound_recipients", id)))
    view = read_first(SubmissionView, rows, recipients=tuple(recipients))
    if view is None:
        raise _unknown(id)
    return view


@transaction
def cancel_submission(sender_id: int, id: UUID, signed: Signature, now: datetime) -> Script[Cancellation]:
    """Do not send a mail of this sender, as far as it has not left."""
    if not (yield sql("select_submission", sender_id, id)):
        raise _unknown(id)
    return (yield from cancel_mail.script(id, signed, now))


def _unknown(id: UUID) -> NotFound:
    return NotFound(f"you have submitted no mail with the id {id}; check the id, and the token")
