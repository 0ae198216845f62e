"""The process in which one side decides about messages by 1,000 rules: `python -m bench.ruling NAME COUNT`.

Both sides get the same rules and messages, made here from a fixed seed: rules as people have them (by sender, domain,
list, subject, pattern, header, label, text, whole words, names, attachments, size, language, and combinations),
messages of about 4 KB of which some two thirds are decided by a rule, anywhere in the order. The naive side reads and
tries one rule after another; each result is compared with its.
"""

import random
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.rule import Rule
from postroom.core.rules.rulebook import Rulebook
from support.naive_rules import naive_first_match

from .order import Outcome, answer

RULES = 1_000
DISTINCT = 400
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
ACCOUNT = UUID(int=1)
WORDS = [
    *("invoice", "receipt", "order", "shipping", "flight", "booking", "password", "reset", "alert", "weekly"),
    *("digest", "newsletter", "offer", "sale", "meeting", "agenda", "report", "ticket", "build", "deploy"),
    *("failed", "success", "hotel", "train", "statement", "review", "release", "reminder", "payment", "contract"),
]


def rules() -> list[Rule]:
    rng = random.Random(1977)
    return [_rule(rng, number) for number in range(RULES)]


def _rule(rng: random.Random, number: int) -> Rule:
    scope, ref = rng.choices(
        [("global", None), ("account", str(ACCOUNT)), ("domain", _domain(rng)), ("sender", _sender(rng))],
        weights=[85, 5, 5, 5],
    )[0]
    shadow = number % 50 == 0
    return Rule(
        UUID(int=number), f"rule {number}", scope, ref, rng.randrange(200), _conditions(rng), "archive", {}, shadow
    )


def _conditions(rng: random.Random) -> dict[str, Any]:
    shape = rng.choices(["one", "and", "or", "unless"], weights=[50, 25, 15, 10])[0]
    match shape:
        case "one":
            return _leaf(rng)
        case "and":
            return {"and": [_leaf(rng), _leaf(rng)]}
        case "or":
            return {"or": [_leaf(rng) for _ in range(rng.randint(2, 4))]}
        case _:
            return {"and": [_leaf(rng), {"not": _leaf(rng)}]}


def _leaf(rng: random.Random) -> dict[str, Any]:
    word, other = rng.sample(WORDS, 2)
    number = rng.randrange(1_000)
    choices: list[tuple[int, dict[str, Any]]] = [
        (25, {"sender_email": _sender(rng)}),
        (20, {"sender_domain": _domain(rng)}),
        (15, {"subject_contains": f"{word} {number}"}),
        (15, {"subject_regex": rf"\b{word}\b.*\b{other} #?{number}"}),
        (8, {"body_contains": f"{word} number {number}"}),
        (6, {"list_id": f"list{number}.example"}),
        (5, {"header_match": {"name": "X-Mailer", "pattern": f"^robot {number}$"}}),
        (3, {"label_present": f"Label_{number}"}),
        (3, {"to": f"alias{number}@lindqvist.example"}),
        (8, {"from": _sender(rng)}),
        (4, {"cc": f"alias{number}@lindqvist.example"}),
        (4, {"from_name": f"Shop {rng.randrange(400)}"}),
        (8, {"from_words": f"s{rng.randrange(20)} {_domain(rng)}"}),
        (12, {"subject_words": f"{word} {number}"}),
        (8, {"body_words": f'"{word} number {rng.randrange(4_000)}"'}),
        (8, {"words": f'"{word} number {rng.randrange(4_000)}" {other}'}),
        (5, {"list": f"list{number}.example"}),
        (4, {"attachment_name": f"{word} {number}.pdf"}),
        (2, {"and": [{"larger": f"{number}K"}, {"attachment_type": "image/png"}]}),
        (2, {"and": [{"sender_in_contacts": True}, {"category": "travel"}, {"subject_words": word}]}),
        (2, {"and": [{"language": "de"}, {"newer_than": "12h"}]}),
    ]
    return rng.choices([leaf for _, leaf in choices], weights=[weight for weight, _ in choices])[0]


def _domain(rng: random.Random) -> str:
    return f"shop{rng.randrange(400)}.example"


def _sender(rng: random.Random) -> str:
    return f"s{rng.randrange(20)}@{_domain(rng)}"


def messages() -> list[MessageFacts]:
    rng = random.Random(2026)
    return [_message(rng) for _ in range(DISTINCT)]


def _message(rng: random.Random) -> MessageFacts:
    subject = " ".join(f"{rng.choice(WORDS).capitalize()} {rng.choice(['#', ''])}{rng.randrange(1_000)}" for _ in "123")
    text = " ".join(f"{rng.choice(WORDS)} number {rng.randrange(1_000)};" for _ in range(180))
    sender = _sender(rng)
    headers = (
        ("From", f"Shop {rng.randrange(400)} <{sender}>"),
        ("To", "Mara <mara@lindqvist.example>"),
        ("Cc", f"<alias{rng.randrange(1_000)}@lindqvist.example>"),
        *((f"X-Header-{n}", str(rng.random())) for n in range(20)),
    )
    has_attachment = rng.random() < 0.2
    return MessageFacts(
        sender,
        subject,
        (*headers, ("List-Id", f"<list{rng.randrange(1_000)}.example>"), ("X-Mailer", f"robot {rng.randrange(1_000)}")),
        frozenset({"INBOX", "UNREAD", f"Label_{rng.randrange(1_000)}"}),
        text,
        has_attachment,
        (f"alias{rng.randrange(1_000)}@lindqvist.example",),
        NOW - timedelta(hours=rng.randrange(100)),
        size=rng.randrange(2_000_000),
        attachments=((f"{rng.choice(WORDS)} {rng.randrange(1_000)}.pdf", "application/pdf"),) if has_attachment else (),
        own_addresses=frozenset({"mara@lindqvist.example"}),
        categories=frozenset({rng.choice(["finance", "travel", "newsletters"])}),
        sender_in_contacts=rng.random() < 0.2,
        sender_seen_before=rng.random() < 0.8,
        reply_to_mine=False,
    )


def main(name: str, count: int) -> Outcome:
    """`finished` counts the messages for which the side came to what the naive one does. Time is that of its core."""
    given, mail = rules(), messages()
    book = Rulebook(given)

    def ours(message: MessageFacts) -> Rule | None:
        return book.decide(ACCOUNT, message, NOW).matched

    def naive(message: MessageFacts) -> Rule | None:
        return naive_first_match(given, ACCOUNT, message, NOW)[0]

    side = ours if name == "postroom" else naive
    work = [mail[number % DISTINCT] for number in range(count)]
    started = time.process_time()
    decided = [side(message) for message in work]
    seconds = time.process_time() - started
    expected = decided if side is naive else [naive(message) for message in mail[: min(count, DISTINCT)]]
    right = sum(rule is expected[number % DISTINCT] for number, rule in enumerate(decided))
    return Outcome(seconds=seconds, handled=count, finished=right)


if __name__ == "__main__":
    answer(main(sys.argv[1], int(sys.argv[2])).to_json())
