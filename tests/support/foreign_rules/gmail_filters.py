"""Random Gmail filters as a file, and random mail about the same few people and words."""

from collections.abc import Callable, Iterable, Mapping
from email.message import EmailMessage
from random import Random
from xml.sax.saxutils import quoteattr

from support.foreign_rules.gmail import ME

ADDRESSES = (ME, "ada@shop.example", "bob@shop.example", "ada@mail.shop.example", "News@club.example")
NAMES = ("", "Ada Lovelace", "Zoë Böhm", "shop", "Bob")
WORDS = ("invoice", "invoices", "Facture", "payée", "sale", "ada", "pdf", "Straße", "n°42", "MUC-7", "hello")
PHRASES = ("past due", "Ada Lovelace", "past, due", "facture payee")
LISTS = ("news.shop.example", "chess.club.example")
FILES = ("invoice.pdf", "photo.jpg", "Facture-42.PDF")


def random_mail(rng: Random) -> EmailMessage:
    message = EmailMessage()
    message["From"] = _mailbox(rng)
    for name, chance in (("To", 0.9), ("Cc", 0.4), ("Bcc", 0.15), ("Reply-To", 0.3)):
        if rng.random() < chance:
            message[name] = ", ".join(_mailbox(rng) for _ in range(1 if name == "Reply-To" else rng.randint(1, 2)))
    if rng.random() < 0.95:
        message["Subject"] = _text(rng, 4)
    if rng.random() < 0.3:
        message["List-Id"] = f"<{rng.choice(LISTS)}>"
    if rng.random() < 0.3:
        message["Delivered-To"] = rng.choice(ADDRESSES)
    message.set_content(_text(rng, 8).replace("past due", "past\ndue") + "\n" + "x " * rng.choice((0, 0, 2_000)))
    if rng.random() < 0.3:
        message.add_attachment(b"content", "application", "octet-stream", filename=rng.choice(FILES))
    return message


def _mailbox(rng: Random) -> str:
    name, address = rng.choice(NAMES), rng.choice(ADDRESSES)
    return f'"{name}" <{address}>' if name else address


def _text(rng: Random, most: int) -> str:
    return " ".join(rng.choice((*WORDS, *PHRASES)) for _ in range(rng.randint(0, most)))


def random_filters(rng: Random) -> list[dict[str, str]]:
    return [_filter(rng) for _ in range(rng.choice((1, 1, 2, 3, 4)))]


def _filter(rng: Random) -> dict[str, str]:
    found: dict[str, str] = {}
    fields = {
        "from": lambda: _joined(rng, lambda: _person(rng)),
        "to": lambda: _joined(rng, lambda: _person(rng)),
        "subject": lambda: _joined(rng, lambda: _word(rng)),
        "hasTheWord": lambda: _search(rng, 0),
        "doesNotHaveTheWord": lambda: _joined(rng, lambda: rng.choice((_word(rng), f"from:{_person(rng)}"))),
        "hasAttachment": lambda: "true",
    }
    for name in rng.sample(list(fields), rng.choice((1, 1, 1, 2, 3))):
        found[name] = fields[name]()
    if rng.random() < 0.15:
        found["size"] = rng.choice(("1", "3", "700"))
    found["sizeOperator"] = rng.choice(("s_sl", "s_ss"))
    found["sizeUnit"] = rng.choice(("s_sb", "s_skb"))
    return found | _actions(rng)


def _actions(rng: Random) -> dict[str, str]:
    possible = {
        "label": rng.choice(("Receipts", "Club", "Work/Later")),
        "shouldArchive": "true",
        "shouldMarkAsRead": "true",
        "shouldStar": "true",
        "shouldTrash": "true",
        "forwardTo": rng.choice(("boss@work.example", "home@y.example")),
        "shouldNeverSpam": "true",
        "shouldAlwaysMarkAsImportant": "true",
    }
    weights = (6, 5, 3, 2, 1, 2, 1, 1)
    return {name: possible[name] for name in rng.choices(list(possible), weights, k=rng.randint(1, 4))}


def _joined(rng: Random, make: Callable[[], str]) -> str:
    first = make()
    for _ in range(rng.choice((0, 0, 1, 2))):
        first += f" {rng.choice(('', '', 'OR '))}{make()}"
    return f"({first})" if rng.random() < 0.1 else first


def _search(rng: Random, depth: int) -> str:
    parts = [_part(rng, depth) for _ in range(rng.choice((1, 1, 2, 3)))]
    text = parts[0]
    for each in parts[1:]:
        text += f" {rng.choice(('', '', 'OR '))}{each}"
    return text


def _part(rng: Random, depth: int) -> str:
    minus = rng.choice(("", "", "", "-"))
    kind = rng.choice(("word", "word", "operator", "operator", "operator", "group", "braces"))
    if kind == "group" and depth < 2:
        return f"{minus}({_search(rng, depth + 1)})"
    if kind == "braces" and depth < 2:
        return f"{minus}{{{' '.join(_part(rng, depth + 1) for _ in range(rng.randint(1, 3)))}}}"
    return minus + (_operator(rng) if kind == "operator" else _word(rng))


def _operator(rng: Random) -> str:
    name = rng.choice(("from", "to", "cc", "bcc", "replyto", "subject", "subject", *OTHERS))
    if name in OTHERS:
        return f"{name}:{rng.choice(OTHERS[name])}"
    values = [_word(rng) if name == "subject" else _person(rng) for _ in range(rng.choice((1, 1, 2)))]
    if name == "replyto":
        values = [each if each != "me" else "ada@shop.example" for each in values]
    return f"{name}:{values[0]}" if len(values) == 1 else f"{name}:({rng.choice((' ', ' OR ')).join(values)})"


OTHERS = {
    "has": ("attachment",),
    "list": (*LISTS, "news@shop.example"),
    "deliveredto": ADDRESSES,
    "filename": ("pdf", "invoice.pdf", "jpg"),
    "larger": ("600", "1K", "1M"),
    "smaller": ("600", "1K", "1M"),
}


def _person(rng: Random) -> str:
    return rng.choice(
        (*ADDRESSES, "@shop.example", "*@club.example", "me", "ada", "shop.example", '"Ada Lovelace"', "Bohm")
    )


def _word(rng: Random) -> str:
    return rng.choice((*WORDS, *(f'"{each}"' for each in PHRASES), "FACTURE", "payee", "invoic"))


def as_file(filters: Iterable[Mapping[str, str]]) -> bytes:
    """The filters as Gmail exports them."""
    entries = [
        "<entry><category term='filter'></category><title>Mail Filter</title><content></content>"
        + "".join(f"<apps:property name='{name}' value={quoteattr(text)}/>" for name, text in each.items())
        + "</entry>"
        for each in filters
    ]
    head = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>"
    return f"<?xml version='1.0' encoding='UTF-8'?>{head}<title>Mail Filters</title>{''.join(entries)}</feed>".encode()
