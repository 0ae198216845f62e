"""Writes the mail of a generated archive from templates, as raw bytes, quickly.

A template is a block of a text file:

    == finance newsletters? | bulk
    From: Kettle & Crumb <orders@kettle-crumb.example>
    Subject: Order {ref} confirmed

    The text.

The first line names the categories of the mail: with a question mark, opinions may differ, and `none` is none at all.
After the bar is the way it was sent: `bulk` (to many), `list` (through a mailing list), `esp` (by a sending service),
`auto` (by a program), or nothing (by a person).
"""

import base64
from calendar import month_name
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from functools import cache
from importlib.resources import files
from random import Random
from typing import Literal

from postroom_sandbox.correspondents import OWNER
from postroom_sandbox.raw_mail import Person, header_text

TemplateSet = Literal["tuned", "held_out"]
Way = Literal["", "auto", "bulk", "esp", "list"]

_CITIES = (
    *(
        "Lisbon",
        "Oslo",
        "Porto",
        "Chicago",
        "Kyoto",
        "Naples",
        "Ghent",
        "Bilbao",
        "Leipzig",
        "Lyon",
        "Turin",
        "Utrecht",
    ),
    *("Cork", "Malmö", "Zürich", "Montréal"),
)
_MONTHS = tuple(month_name[1:])
_DATES = ("%d.%m.%Y", "%B %d, %Y", "%Y-%m-%d", "%a %d %b", "%d/%m/%Y")
_PEOPLE = {
    "tuned": (
        "Nora Beck",
        "Luis Pardo",
        "Hanne Voss",
        "Tim Okoro",
        "Chiara Sala",
        "Piet Kok",
        "Julie Roche",
        "Ben Hart",
    ),
    "held_out": (
        *("Ada Quinn", "Marek Novák", "Sofie Jansen", "Rosa Marín", "Yusuf Demir", "Claire Fabre", "Paolo Neri"),
        *("Greta Lund", "Owen Price", "Hana Sato", "Dieter Kolb", "Inès Moreau", "Jack O'Dea", "Katja Wolf"),
    ),
}
_PRIVATE = ("post.example.net", "mailhaus.example", "inbox.example.org", "halden-frost.example", "kolb-partner.example")
_FILLER: tuple[str, ...] = (
    "Our office is closed on public holidays.",
    "We wrote about this last month, and many of you answered.",
    "The photographs are by one of our readers.",
    "There is more on our pages, with pictures and a map.",
    "A hotel, a doctor and an unpaid bill: the crime novel of the month is a good one.",
    "Next week we talk about trains, taxes and tomatoes.",
    "You can change how often we write to you.",
    "The winners of the last competition will hear from us.",
)
_FOOTERS = (
    "Help | Privacy | Contact",
    "You receive this message because you are our customer.",
    "© All rights reserved.",
)


@dataclass(frozen=True)
class Template:
    """One kind of mail. `categories` are certain; in those that are `unclear` it may be or not."""

    categories: frozenset[str]
    unclear: frozenset[str]
    way: Way
    sender: str
    subject: str
    text: str
    name: str
    source: TemplateSet

    @property
    def kind(self) -> str:
        """The category that decides how often it comes."""
        for each in ("finance", "health", "travel", "relationship", "newsletters"):
            if each in self.categories:
                return each
        return "newsletters" if "newsletters" in self.unclear else "none"


@cache
def templates(source: TemplateSet) -> tuple[Template, ...]:
    """The templates of one set."""
    text = (files("postroom_sandbox") / "archive_templates" / f"{source}.txt").read_text("utf-8")
    blocks = text.split("\n== ")[1:]
    return tuple(_template(block, f"{source}-{number}", source) for number, block in enumerate(blocks, 1))


def _template(block: str, name: str, source: TemplateSet) -> Template:
    head, _, text = block.partition("\n\n")
    first, sender, subject = head.splitlines()
    words, _, way = first.partition("|")
    named = [word for word in words.split() if word != "none"]
    return Template(
        frozenset(word for word in named if not word.endswith("?")),
        frozenset(word[:-1] for word in named if word.endswith("?")),
        _way(way.strip()),
        sender.removeprefix("From: "),
        subject.removeprefix("Subject: "),
        text.strip(),
        name,
        source,
    )


def _way(word: str) -> Way:
    match word:
        case "" | "auto" | "bulk" | "esp" | "list":
            return word
        case _:
            raise ValueError(f"{word!r} is not a way to send mail")


class ArchiveWriter:
    """Fills templates in, by chance."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def write(self, template: Template, at: datetime) -> bytes:
        """The mail as received at this time; its Date is in the zone of `at`."""
        rng, who, fields = self._rng, self._person(template), self._fields(at)
        fields |= {"who": who.name, "address": who.address}
        if "{address}" in template.sender and not template.sender.startswith("Dr."):
            sender = who
        else:
            name, _, address = template.sender.format(**fields).rpartition(" <")
            sender = Person(name, address.rstrip(">"))
        headers = {
            "Received": f"from mx.{sender.domain} by mx.{OWNER.domain}; {format_datetime(at)}",
            "From": sender.as_header(),
            "To": "list@lists.example.org" if template.way == "list" else OWNER.as_header(),
            "Subject": header_text(template.subject.format(**fields)),
            "Date": format_datetime(at),
            "Message-ID": f"<{rng.getrandbits(80):020x}@{sender.domain}>",
            **self._headers(template.way, sender.domain),
        }
        text = "\r\n".join([*template.text.format(**fields).splitlines(), *self._more(template)]) + "\r\n"
        return _raw(headers, text, rng.random())

    def sent(self, template: Template, at: datetime) -> bytes:
        """A message from the owner to somebody."""
        who, fields = self._person(template), self._fields(at)
        fields |= {"who": OWNER.first_name, "address": OWNER.address}
        headers = {
            "From": OWNER.as_header(),
            "To": who.as_header(),
            "Subject": header_text(template.subject.format(**fields)),
            "Date": format_datetime(at),
            "Message-ID": f"<{self._rng.getrandbits(80):020x}@mail.{OWNER.domain}>",
        }
        return _raw(headers, template.text.format(**fields) + "\r\n", 1.0)

    def _person(self, template: Template) -> Person:
        name = self._rng.choice(_PEOPLE[template.source])
        local = ".".join(part for part in name.lower().replace("'", "").split() if part.isascii())
        return Person(name, f"{local or 'post'}@{self._rng.choice(_PRIVATE)}")

    def _fields(self, at: datetime) -> dict[str, str]:
        rng = self._rng
        return {
            "first": OWNER.first_name,
            "mail": OWNER.address,
            "n": str(rng.randrange(100_000, 100_000_000)),
            "n3": str(rng.randrange(1, 1000)),
            "ref": "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=6)),
            "amt": f"{rng.randrange(300, 90_000) / 100:.2f}",
            "date": at.strftime(rng.choice(_DATES)),
            "time": f"{rng.randrange(6, 22)}:{rng.randrange(0, 60, 5):02}",
            "month": rng.choice(_MONTHS),
            "year": str(at.year),
            "city": rng.choice(_CITIES),
        }

    def _headers(self, way: Way, domain: str) -> dict[str, str]:
        match way:
            case "bulk":
                return self._bulk_headers(domain)
            case "list":
                return {
                    "List-Id": f"<list.{domain}>",
                    "List-Unsubscribe": f"<https://{domain}/leave>",
                    "Precedence": "list",
                }
            case "esp":
                return {"Feedback-ID": f"{self._rng.getrandbits(32)}:{domain}", "X-Mailer": "Sending Service 4.2"}
            case "auto":
                return {"Auto-Submitted": "auto-generated"} if self._rng.random() < 0.5 else {}
            case "":
                return {}

    def _bulk_headers(self, domain: str) -> dict[str, str]:
        """One of the usual ways to say that mail is bulk. One in 25 does not say it at all, as much old mail."""
        leave = f"<https://{domain}/leave/{self._rng.getrandbits(32):x}>"
        chance = self._rng.random()
        if chance < 0.04:
            return {}
        if chance < 0.12:
            return {"Precedence": "bulk"}
        if chance < 0.5:
            return {"List-Unsubscribe": leave, "List-Id": f"<news.{domain}>"}
        return {"List-Unsubscribe": leave, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Precedence": "bulk"}

    def _more(self, template: Template) -> list[str]:
        """What stands below the text of a program: sentences about anything, and a footer."""
        match template.way:
            case "bulk":
                return [*self._rng.sample(_FILLER, self._rng.randrange(1, 6))] * self._rng.choice((1, 1, 1, 8))
            case "esp" | "auto":
                return ["", self._rng.choice(_FOOTERS)]
            case _:
                return []


def _raw(headers: dict[str, str], text: str, chance: float) -> bytes:
    """The bytes: plain text as it is, in base64, or beside HTML."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    kind = 'Content-Type: text/plain; charset="utf-8"\r\n'
    if chance < 0.1:
        body = base64.encodebytes(text.encode()).decode()
        return f"{head}MIME-Version: 1.0\r\n{kind}Content-Transfer-Encoding: base64\r\n\r\n{body}".encode()
    if chance < 0.3:
        page = text.replace("&", "&amp;").replace("<", "&lt;").replace("\r\n", "<br>\r\n")
        both = f"--=_both\r\n{kind}Content-Transfer-Encoding: 8bit\r\n\r\n{text}\r\n--=_both\r\n"
        both += (
            f"Content-Type: text/html; charset=utf-8\r\n\r\n<html><body><p>{page}</p></body></html>\r\n--=_both--\r\n"
        )
        alternative = 'Content-Type: multipart/alternative; boundary="=_both"\r\n'
        return f"{head}MIME-Version: 1.0\r\n{alternative}\r\n{both}".encode()
    return f"{head}MIME-Version: 1.0\r\n{kind}Content-Transfer-Encoding: 8bit\r\n\r\n{text}".encode()
