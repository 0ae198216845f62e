"""Sample mail: a mailbox full of a fictional person's mail, generated from a seed, and new mail that keeps arriving.

The same seed and time give the same bytes.
"""

import base64
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html import escape
from random import Random
from typing import Any, TypeVar

from postroom_sandbox import correspondents as people
from postroom_sandbox.correspondents import OWNER, Conversation
from postroom_sandbox.mailbox import Mailbox, utc_now
from postroom_sandbox.raw_mail import Attachment, Person, SampleMail, write
from postroom_sandbox.scenes import Scene

Item = TypeVar("Item")

DAYS = 30
PROMOTION = frozenset({"INBOX", "UNREAD", "CATEGORY_PROMOTIONS"})
UPDATE = frozenset({"INBOX", "UNREAD", "CATEGORY_UPDATES"})
FORUM = frozenset({"INBOX", "UNREAD", "CATEGORY_FORUMS"})
PERSONAL = frozenset({"INBOX", "UNREAD", "CATEGORY_PERSONAL"})
IMPORTANT = PERSONAL | {"IMPORTANT"}
SENT = frozenset({"SENT"})
SPAM = frozenset({"SPAM", "UNREAD"})

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 0/Kids[]>>endobj\n%%EOF\n"


_NOW_AND_THEN = (True, False, False)


class SampleWriter:
    """Writes the mail of all correspondents, one method for each kind."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._decks: dict[int, list[Any]] = {}

    def newsletter(self, at: datetime) -> SampleMail:
        paper = self._deal(people.NEWSLETTERS)
        leave = f"https://{paper.sender.domain}/leave/{self._number()}"
        headers = {
            "List-Id": f"<{paper.list_id}>",
            "List-Unsubscribe": f"<{leave}>, <mailto:leave@{paper.sender.domain}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Precedence": "bulk",
        }
        subject = self._deal(paper.subjects)
        text = f"{subject}\n\n{paper.text}\n\nNo longer interested? {leave}\n"
        return self._mail(paper.sender, subject, text, at, PROMOTION, headers, html=_page(subject, paper.text, leave))

    def receipt(self, at: datetime) -> SampleMail:
        shop, order, goods = self._deal(people.SHOPS), self._number(), self._rng.sample(people.GOODS, 2)
        prices = [self._rng.randrange(250, 4000) for _ in goods]
        rows = [f"{name:<28}{price / 100:8.2f} EUR" for name, price in zip(goods, prices, strict=True)]
        text = "\n".join(
            [f"Thank you for your order {order}.", "", *rows, f"{'Total':<28}{sum(prices) / 100:8.2f} EUR"]
        )
        invoice = [Attachment(f"Rechnung-{order}.pdf", "application/pdf", _PDF)] if self._deal(_NOW_AND_THEN) else []
        return self._mail(shop, f"Your receipt for order {order}", text, at, UPDATE, attachments=invoice)

    def shipping(self, at: datetime) -> SampleMail:
        subject, text = self._deal(people.SHIPPING)
        headers = {"Auto-Submitted": "auto-generated"}
        return self._mail(people.CARRIER, subject.format(number=self._number()), text, at, UPDATE, headers)

    def service(self, at: datetime) -> SampleMail:
        sender, subject, text = self._deal(people.SERVICES)
        return self._mail(sender, subject, text, at, UPDATE, {"Auto-Submitted": "auto-generated"})

    def appointment(self, at: datetime) -> SampleMail:
        day = at + timedelta(days=self._rng.randrange(2, 20))
        subject = f"Ihr Termin am {day:%d.%m.} um {self._rng.randrange(8, 17)}:30 Uhr"
        text = "Guten Tag Frau Lindqvist,\n\nbitte bringen Sie Ihre Versichertenkarte mit. Können Sie nicht kommen, "
        text += "sagen Sie bitte 24 Stunden vorher ab.\n\nIhre Praxis Dr. Amsel\n"
        return self._mail(people.PRACTICE, subject, text, at, IMPORTANT, charset="iso-8859-1")

    def colleague(self, at: datetime) -> SampleMail:
        sender = self._deal(people.COLLEAGUES)
        subject, text = self._deal(people.WORK)
        plan = [Attachment("Grundriß Nord.png", "image/png", _PIXEL)] if self._deal(_NOW_AND_THEN) else []
        return self._mail(
            sender, subject, f"Hi Mara,\n\n{text}\n\n{sender.first_name}\n", at, IMPORTANT, attachments=plan
        )

    def family(self, at: datetime) -> SampleMail:
        sender = self._deal(people.FAMILY)
        subject, text = self._deal(people.FAMILY_NEWS)
        return self._mail(sender, subject, f"{text}\n\n{sender.first_name}\n", at, PERSONAL)

    def invitation(self, at: datetime) -> SampleMail:
        sender, topic = self._deal(people.COLLEAGUES), self._deal(people.MEETINGS)
        begin = (at + timedelta(days=self._rng.randrange(1, 9))).replace(minute=0, second=0, microsecond=0)
        event = _event(f"{self._number()}@{sender.domain}", sender, topic, at, begin)
        subject = f"Invitation: {topic} ({begin:%d %b %H:%M})"
        return self._mail(sender, subject, f"{sender.name} invites you to: {topic}\n", at, PERSONAL, invitation=event)

    def choir(self, at: datetime) -> SampleMail:
        sender = self._deal(people.SINGERS)
        subject, text = self._deal(people.CHOIR_TOPICS)
        headers = {
            "List-Id": "The choir <choir.lists.example.org>",
            "List-Post": f"<mailto:{people.CHOIR}>",
            "List-Unsubscribe": "<https://lists.example.org/choir/leave>",
            "Precedence": "list",
            "Sender": "choir-bounces@lists.example.org",
        }
        to = Person("The choir", people.CHOIR)
        return self._mail(sender, f"[choir] {subject}", f"{text}\n\n{sender.first_name}\n", at, FORUM, headers, to=to)

    def stranger(self, at: datetime) -> SampleMail:
        name, address, subject, text, charset = self._deal(people.STRANGERS)
        return self._mail(Person(name, address), subject, text + "\n", at, PERSONAL, charset=charset)

    def junk(self, at: datetime) -> SampleMail:
        sender, subject, text = people.JUNK
        return self._mail(sender, subject, text, at, SPAM)

    def scene(self, scene: Scene, at: datetime) -> SampleMail:
        """One mail of the story."""
        papers = [Attachment("Rechnung.pdf", "application/pdf", _PDF)] if scene.has_invoice else []
        labels = UPDATE if scene.is_automatic else PERSONAL
        return self._mail(scene.sender, scene.subject, scene.text, at, labels, dict(scene.headers), attachments=papers)

    def sent(self, topic: Conversation, at: datetime) -> SampleMail:
        raw = write(OWNER, topic.partner, topic.subject, topic.text + "\n", at, topic.message_id)
        return SampleMail(raw, SENT, at)

    def answer(self, at: datetime, topic: Conversation | None = None) -> SampleMail:
        """A reply to a message that the owner sent."""
        topic = topic or self._deal(people.CONVERSATIONS)
        quoted = "".join(f"> {line}\n" for line in topic.text.splitlines())
        text = f"{self._deal(topic.answers)}\n\n{topic.partner.first_name}\n\n{OWNER.name} wrote:\n{quoted}"
        headers = {"In-Reply-To": topic.message_id, "References": topic.message_id}
        return self._mail(topic.partner, f"Re: {topic.subject}", text, at, IMPORTANT, headers)

    def _mail(
        self,
        sender: Person,
        subject: str,
        text: str,
        at: datetime,
        labels: frozenset[str],
        headers: dict[str, str] | None = None,
        to: Person = OWNER,
        html: str = "",
        charset: str = "utf-8",
        attachments: list[Attachment] | None = None,
        invitation: str = "",
    ) -> SampleMail:
        message_id = f"<{self._rng.getrandbits(80):020x}@{sender.domain}>"
        raw = write(sender, to, subject, text, at, message_id, headers, html, charset, attachments or (), invitation)
        return SampleMail(raw, labels, at)

    def _deal(self, pool: tuple[Item, ...]) -> Item:
        """Draw from the pool as from a shuffled deck: nothing repeats before everything was drawn once."""
        deck = self._decks.setdefault(id(pool), [])
        if not deck:
            deck += self._rng.sample(pool, len(pool))
        return deck.pop()

    def _number(self) -> int:
        return self._rng.randrange(100_000, 1_000_000)


Template = Callable[[SampleWriter, datetime], SampleMail]

# How many of each kind are in the sample. New mail arrives in the same proportions.
KINDS: dict[Template, int] = {
    SampleWriter.newsletter: 12,
    SampleWriter.receipt: 7,
    SampleWriter.shipping: 6,
    SampleWriter.service: 3,
    SampleWriter.appointment: 2,
    SampleWriter.colleague: 8,
    SampleWriter.family: 5,
    SampleWriter.invitation: 3,
    SampleWriter.choir: 6,
    SampleWriter.stranger: 4,
    SampleWriter.junk: 1,
    SampleWriter.answer: 5,
}


def sample_mail(seed: int, now: datetime) -> list[SampleMail]:
    """The mail of the last thirty days, oldest first. The owner's own mail is older than the replies to it."""
    rng = Random(seed)  # noqa: S311 (made-up mail is no secret)
    writer = SampleWriter(rng)
    month, half = timedelta(days=DAYS), timedelta(days=DAYS / 2)
    mails = [writer.sent(topic, now - half - rng.random() * half) for topic in people.CONVERSATIONS]
    for kind, number in KINDS.items():
        reach = half if kind is SampleWriter.answer else month
        mails += [_as_handled(kind(writer, now - rng.random() * reach), now, rng) for _ in range(number)]
    return sorted(mails, key=lambda mail: mail.received_at)


def fill_sample(mailbox: Mailbox, seed: int, now: datetime | None = None) -> None:
    """Add the sample mail and a few of the owner's labels to a mailbox."""
    receipts = mailbox.labels.create("Receipts", {}).id
    mailbox.labels.create("Family", {})
    mailbox.labels.create("Work/Library", {})
    for mail in sample_mail(seed, now or mailbox.clock()):
        message = mailbox.deliver(mail.raw, mail.labels, mail.received_at)
        if "INBOX" not in message.labels and "receipt" in message.mail.header("Subject"):
            mailbox.modify(message.id, add=[receipts])


def arrivals(rng: Random, clock: Callable[[], datetime] = utc_now) -> Iterator[SampleMail]:
    """An endless stream of new mail."""
    writer = SampleWriter(rng)
    kinds, numbers = list(KINDS), list(KINDS.values())
    while True:
        (kind,) = rng.choices(kinds, numbers)
        yield kind(writer, clock())


def _as_handled(mail: SampleMail, now: datetime, rng: Random) -> SampleMail:
    """The mail as the owner would have left it: older mail is mostly read, and some of it archived."""
    labels = mail.labels
    if now - mail.received_at > timedelta(days=3) and "SPAM" not in labels:
        if rng.random() < 0.8:
            labels -= {"UNREAD"}
        if rng.random() < 0.3:
            labels -= {"INBOX"}
        if rng.random() < 0.1:
            labels |= {"STARRED"}
    return SampleMail(mail.raw, labels, mail.received_at)


def _page(subject: str, text: str, leave: str) -> str:
    return (
        f"<html><head><style>h1 {{ color: #335 }}</style></head><body><h1>{escape(subject)}</h1>"
        f'<p>{escape(text)}</p><p><a href="{leave}">Unsubscribe</a></p></body></html>\n'
    )


def _event(uid: str, organiser: Person, topic: str, written: datetime, begin: datetime) -> str:
    lines = (
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Sandbox//Calendar//EN", "METHOD:REQUEST", "BEGIN:VEVENT",
        f"UID:{uid}", f"DTSTAMP:{written:%Y%m%dT%H%M%SZ}", f"DTSTART:{begin:%Y%m%dT%H%M%SZ}",
        f"DTEND:{begin + timedelta(hours=1):%Y%m%dT%H%M%SZ}", f"SUMMARY:{topic}",
        f"ORGANIZER:mailto:{organiser.address}", f"ATTENDEE;RSVP=TRUE:mailto:{OWNER.address}",
        "END:VEVENT", "END:VCALENDAR",
    )  # fmt: skip
    return "\r\n".join(lines) + "\r\n"
