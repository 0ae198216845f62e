"""A mailbox full of a fictional person's mail, made up anew from a seed, and more mail that keeps arriving.

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
from postroom_sandbox.letters import Attachment, Letter, Person, write
from postroom_sandbox.mailbox import Mailbox, utc_now

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


class Pen:
    """Writes the letters of all correspondents, each kind in its own way."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._decks: dict[int, list[Any]] = {}

    def newsletter(self, at: datetime) -> Letter:
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
        return self._letter(paper.sender, subject, text, at, PROMOTION, headers, html=_page(subject, paper.text, leave))

    def receipt(self, at: datetime) -> Letter:
        shop, order, goods = self._deal(people.SHOPS), self._number(), self._rng.sample(people.GOODS, 2)
        prices = [self._rng.randrange(250, 4000) for _ in goods]
        rows = [f"{name:<28}{price / 100:8.2f} EUR" for name, price in zip(goods, prices, strict=True)]
        text = "\n".join(
            [f"Thank you for your order {order}.", "", *rows, f"{'Total':<28}{sum(prices) / 100:8.2f} EUR"]
        )
        invoice = [Attachment(f"Rechnung-{order}.pdf", "application/pdf", _PDF)] if self._deal(_NOW_AND_THEN) else []
        return self._letter(shop, f"Your receipt for order {order}", text, at, UPDATE, attachments=invoice)

    def shipping(self, at: datetime) -> Letter:
        subject, text = self._deal(people.SHIPPING)
        headers = {"Auto-Submitted": "auto-generated"}
        return self._letter(people.CARRIER, subject.format(number=self._number()), text, at, UPDATE, headers)

    def service(self, at: datetime) -> Letter:
        sender, subject, text = self._deal(people.SERVICES)
        return self._letter(sender, subject, text, at, UPDATE, {"Auto-Submitted": "auto-generated"})

    def appointment(self, at: datetime) -> Letter:
        day = at + timedelta(days=self._rng.randrange(2, 20))
        subject = f"Ihr Termin am {day:%d.%m.} um {self._rng.randrange(8, 17)}:30 Uhr"
        text = "Guten Tag Frau Lindqvist,\n\nbitte bringen Sie Ihre Versichertenkarte mit. Können Sie nicht kommen, "
        text += "sagen Sie bitte 24 Stunden vorher ab.\n\nIhre Praxis Dr. Amsel\n"
        return self._letter(people.PRACTICE, subject, text, at, IMPORTANT, charset="iso-8859-1")

    def colleague(self, at: datetime) -> Letter:
        sender = self._deal(people.COLLEAGUES)
        subject, text = self._deal(people.WORK)
        plan = [Attachment("Grundriß Nord.png", "image/png", _PIXEL)] if self._deal(_NOW_AND_THEN) else []
        return self._letter(
            sender, subject, f"Hi Mara,\n\n{text}\n\n{sender.first_name}\n", at, IMPORTANT, attachments=plan
        )

    def family(self, at: datetime) -> Letter:
        sender = self._deal(people.FAMILY)
        subject, text = self._deal(people.FAMILY_NEWS)
        return self._letter(sender, subject, f"{text}\n\n{sender.first_name}\n", at, PERSONAL)

    def invitation(self, at: datetime) -> Letter:
        sender, topic = self._deal(people.COLLEAGUES), self._deal(people.MEETINGS)
        begin = (at + timedelta(days=self._rng.randrange(1, 9))).replace(minute=0, second=0, microsecond=0)
        event = _event(f"{self._number()}@{sender.domain}", sender, topic, at, begin)
        subject = f"Invitation: {topic} ({begin:%d %b %H:%M})"
        return self._letter(sender, subject, f"{sender.name} invites you to: {topic}\n", at, PERSONAL, invitation=event)

    def choir(self, at: datetime) -> Letter:
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
        return self._letter(sender, f"[choir] {subject}", f"{text}\n\n{sender.first_name}\n", at, FORUM, headers, to=to)

    def stranger(self, at: datetime) -> Letter:
        name, address, subject, text, charset = self._deal(people.STRANGERS)
        return self._letter(Person(name, address), subject, text + "\n", at, PERSONAL, charset=charset)

    def junk(self, at: datetime) -> Letter:
        sender, subject, text = people.JUNK
        return self._letter(sender, subject, text, at, SPAM)

    def sent(self, topic: Conversation, at: datetime) -> Letter:
        raw = write(OWNER, topic.partner, topic.subject, topic.text + "\n", at, topic.message_id)
        return Letter(raw, SENT, at)

    def answer(self, at: datetime) -> Letter:
        """A reply to what the owner once sent."""
        topic = self._deal(people.CONVERSATIONS)
        quoted = "".join(f"> {line}\n" for line in topic.text.splitlines())
        text = f"{self._deal(topic.answers)}\n\n{topic.partner.first_name}\n\n{OWNER.name} wrote:\n{quoted}"
        headers = {"In-Reply-To": topic.message_id, "References": topic.message_id}
        return self._letter(topic.partner, f"Re: {topic.subject}", text, at, IMPORTANT, headers)

    def _letter(
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
    ) -> Letter:
        message_id = f"<{self._rng.getrandbits(80):020x}@{sender.domain}>"
        raw = write(sender, to, subject, text, at, message_id, headers, html, charset, attachments or (), invitation)
        return Letter(raw, labels, at)

    def _deal(self, pool: tuple[Item, ...]) -> Item:
        """One of the pool, as from a shuffled deck: none comes twice before all have come once."""
        deck = self._decks.setdefault(id(pool), [])
        if not deck:
            deck += self._rng.sample(pool, len(pool))
        return deck.pop()

    def _number(self) -> int:
        return self._rng.randrange(100_000, 1_000_000)


Template = Callable[[Pen, datetime], Letter]

# How many of each kind are in the sample; new mail arrives in the same proportions.
KINDS: dict[Template, int] = {
    Pen.newsletter: 12,
    Pen.receipt: 7,
    Pen.shipping: 6,
    Pen.service: 3,
    Pen.appointment: 2,
    Pen.colleague: 8,
    Pen.family: 5,
    Pen.invitation: 3,
    Pen.choir: 6,
    Pen.stranger: 4,
    Pen.junk: 1,
    Pen.answer: 5,
}


def sample_letters(seed: int, now: datetime) -> list[Letter]:
    """The mail of the last thirty days, oldest first. What the owner sent is older than the answers to it."""
    rng = Random(seed)  # noqa: S311 (made-up mail is no secret)
    pen = Pen(rng)
    month, half = timedelta(days=DAYS), timedelta(days=DAYS / 2)
    letters = [pen.sent(topic, now - half - rng.random() * half) for topic in people.CONVERSATIONS]
    for kind, number in KINDS.items():
        reach = half if kind is Pen.answer else month
        letters += [_handled(kind(pen, now - rng.random() * reach), now, rng) for _ in range(number)]
    return sorted(letters, key=lambda letter: letter.received_at)


def fill_sample(mailbox: Mailbox, seed: int, now: datetime | None = None) -> None:
    """Puts the sample's mail and a few labels of the owner's into a mailbox."""
    receipts = mailbox.labels.create("Receipts", {}).id
    mailbox.labels.create("Family", {})
    mailbox.labels.create("Work/Library", {})
    for letter in sample_letters(seed, now or mailbox.clock()):
        message = mailbox.deliver(letter.raw, letter.labels, letter.received_at)
        if "INBOX" not in message.labels and "receipt" in message.mail.header("Subject"):
            mailbox.modify(message.id, add=[receipts])


def arrivals(rng: Random, clock: Callable[[], datetime] = utc_now) -> Iterator[Letter]:
    """New mail without end."""
    pen = Pen(rng)
    kinds, numbers = list(KINDS), list(KINDS.values())
    while True:
        (kind,) = rng.choices(kinds, numbers)
        yield kind(pen, clock())


def _handled(letter: Letter, now: datetime, rng: Random) -> Letter:
    """Older mail has mostly been read, and some of it filed away."""
    labels = letter.labels
    if now - letter.received_at > timedelta(days=3) and "SPAM" not in labels:
        if rng.random() < 0.8:
            labels -= {"UNREAD"}
        if rng.random() < 0.3:
            labels -= {"INBOX"}
        if rng.random() < 0.1:
            labels |= {"STARRED"}
    return Letter(letter.raw, labels, letter.received_at)


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
