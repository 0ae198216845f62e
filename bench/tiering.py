"""The process in which one side gives raw messages their tiers: `python -m bench.tiering NAME COUNT`.

Every side gets the same messages, made here from a fixed seed, about 6 KB each with the headers that mail has after a
few relays. Each message comes with the rule that decides it, and a side that comes to another one has failed. The
stdlib sides look at no more headers than the rules ask for; what they cannot help is parsing the rest of the message.
"""

import email
import email.policy
import random
import sys
import time
from collections.abc import Callable
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import getaddresses

from fast_mail_parser import parse_email

from postroom.core.mail.tiers import Known, assign_tier_from_raw

from .order import Outcome, answer

DISTINCT = 500
RULES = ("known_contact", "reply_to_outbound", "direct_correspondence", "fallback_default")
USER, CONTACT, SENT = "mara@lindqvist.example", "ida@lindqvist.example", "<sent.7@lindqvist.example>"
KNOWN = Known.of([USER], [CONTACT, *(f"contact{n}@people.example" for n in range(500))], [SENT])
BULK = frozenset({"bulk", "list", "junk"})

Sorted = tuple[bytes, str]


def messages() -> list[Sorted]:
    rng = random.Random(2026)
    return [_message(rng, number, RULES[number % len(RULES)]) for number in range(DISTINCT)]


def _message(rng: random.Random, number: int, rule: str) -> Sorted:
    sender = (
        f'"Lindqvist, Ida" <{CONTACT}>' if rule == "known_contact" else f"Someone {number} <s{number}@shop.example>"
    )
    head = [
        *(_relay(rng, hop) for hop in range(5)),
        f"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n\td=shop.example; b={_noise(rng, 340)}",
        f"Message-ID: <{number}.{rng.random()}@shop.example>",
        f"From: {sender}",
        f"To: Mara <{USER}>" if rule != "fallback_default" or number % 8 else "To: undisclosed-recipients:;",
        "Subject: =?utf-8?q?Caf=C3=A9_und_Kuchen?= number " + str(number),
        "Date: Sun, 15 Nov 2026 08:00:00 +0000",
        "MIME-Version: 1.0",
        *([f"In-Reply-To: <other@x>\r\n {SENT}"] if rule == "reply_to_outbound" else []),
        *(["List-Unsubscribe: <https://shop.example/off>"] if rule == "fallback_default" else []),
        'Content-Type: multipart/alternative; boundary="b"',
    ]
    words = "The quarterly report is attached; please read it before Thursday.\r\n" * rng.randint(5, 40)
    parts = ["--b", "Content-Type: text/plain", "", words, "--b", "Content-Type: text/html", "", words * 2, "--b--"]
    return "\r\n".join([*head, "", *parts]).encode(), rule


def _relay(rng: random.Random, hop: int) -> str:
    name = f"mx{hop}.relay.example"
    return f"Received: from {name} ({name} [192.0.2.{hop}])\r\n\tby in.example id {_noise(rng, 24)}"


def _noise(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


def ours(raw: bytes) -> str:
    return assign_tier_from_raw(raw, KNOWN).rule


def stdlib_modern(raw: bytes) -> str:
    return _decide(email.message_from_bytes(raw, policy=email.policy.default))


def stdlib_compat32(raw: bytes) -> str:
    return _decide(email.message_from_bytes(raw))


def stdlib_head_only(raw: bytes) -> str:
    return _decide(BytesHeaderParser().parsebytes(raw))


def fast_mail_parser(raw: bytes) -> str:
    """Its own addresses, without decoding any body."""
    mail = parse_email(raw, mode="metadata")
    if mail.from_ is not None and mail.from_.address.lower() in KNOWN.contacts:
        return RULES[0]
    headers = {name.lower(): values for name, values in mail.headers.items()}
    if any(id in KNOWN.sent_ids for value in headers.get("in-reply-to", []) for id in value.split()):
        return RULES[1]
    bulk = "list-unsubscribe" in headers or any(value.lower() in BULK for value in headers.get("precedence", []))
    return RULES[2] if not bulk and any(each.address.lower() in KNOWN.user_addresses for each in mail.to) else RULES[3]


def _decide(mail: Message) -> str:
    def addresses(name: str) -> set[str]:
        return {address.lower() for _, address in getaddresses([str(value) for value in mail.get_all(name, [])])}

    if addresses("From") & KNOWN.contacts:
        return RULES[0]
    if any(id in KNOWN.sent_ids for value in mail.get_all("In-Reply-To", []) for id in str(value).split()):
        return RULES[1]
    bulk = "List-Unsubscribe" in mail or any(value.lower() in BULK for value in mail.get_all("Precedence", []))
    return RULES[2] if not bulk and addresses("To") & KNOWN.user_addresses else RULES[3]


SIDES: dict[str, Callable[[bytes], str]] = {
    "postroom": ours,
    "stdlib, modern policy": stdlib_modern,
    "stdlib, compat32": stdlib_compat32,
    "stdlib, head only": stdlib_head_only,
    "fast-mail-parser": fast_mail_parser,
}


def main(name: str, count: int) -> Outcome:
    """`finished` counts the messages whose rule was the right one. Time is that of this process on its core."""
    side, given = SIDES[name], messages()
    work = [given[number % DISTINCT] for number in range(count)]
    started = time.process_time()
    decided = [side(raw) for raw, _ in work]
    seconds = time.process_time() - started
    right = sum(rule == expected for rule, (_, expected) in zip(decided, work, strict=True))
    return Outcome(seconds=seconds, handled=count, finished=right)


if __name__ == "__main__":
    answer(main(sys.argv[1], int(sys.argv[2])).to_json())
