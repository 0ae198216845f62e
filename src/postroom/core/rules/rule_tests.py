"""Tests of rules, in the same file: a message, and the combined actions of the rules.

    tests:
      - mail: {from: orders@shop.example, subject: Your receipt}
        expect: [apply_label Receipts, archive]
        rule: receipts
      - mail: {from: ida@friends.example, subject: Dinner?}
        expect: none

A fact that a test does not give is unknown, so rules that need it are skipped, as for mail in files.
"""

import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from postroom.core.actions.steps import Step, combined, read_steps, shown, steps_of
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.mail.mime import parse_message
from postroom.core.rules.explain import explain
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.file_facts import facts_from_file
from postroom.core.rules.leaf import suggestion
from postroom.core.rules.needs import unknown_kinds
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rulebook import Rulebook
from postroom.core.strict import shown_name, yes_or_no

MOST_TESTS = 10_000
LONGEST_NAME = 200
MOST_EXPLAINED = 3
NO_ACCOUNT = UUID(int=0)
FIELDS = ("name", "mail", "expect", "rule")
HEADERS = {
    "from": "From",
    "to": "To",
    "cc": "Cc",
    "bcc": "Bcc",
    "reply_to": "Reply-To",
    "subject": "Subject",
    "date": "Date",
    "list_id": "List-Id",
}
KNOWN = ("in_contacts", "seen_before", "reply_to_mine")
MAIL_FIELDS = (*HEADERS, "text", "headers", "attachments", "labels", "size", "me", *KNOWN)


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A message, the steps that are expected, and the rule that is to be among those that decide."""

    name: str
    message: MessageFacts
    expected: tuple[Step, ...]
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test. `problem` is why it fails; None if it passes."""

    __test__ = False

    name: str
    expected: str
    found: str
    problem: str | None

    @property
    def passed(self) -> bool:
        return self.problem is None


def read_tests(given: object) -> list[RuleTest]:
    """The tests in a document. Raises BadInput, which names the test and the field."""
    if not isinstance(given, list):
        raise BadInput("tests", "are not a list", "write `tests:` and below it `- mail: {…}` with `expect: …`")
    items = cast("list[object]", given)
    if len(items) > MOST_TESTS:
        raise BadInput("tests", f"are {len(items):,}", f"give at most {MOST_TESTS:,}")
    found: list[RuleTest] = []
    for number, each in enumerate(items, 1):
        try:
            found.append(_read_test(each, number))
        except BadInput as error:
            raise BadInput(f"test {number}, {error.field}", error.problem, error.remedy) from None
    return found


def run_tests(tests: Sequence[RuleTest], rules: Sequence[Rule], now: datetime) -> list[TestResult]:
    """Run the tests against these rules together, as if each message arrived now."""
    book = Rulebook(rules)
    return [_run(test, book, rules, now) for test in tests]


def _run(test: RuleTest, book: Rulebook, rules: Sequence[Rule], now: datetime) -> TestResult:
    hidden = unknown_kinds(test.message)
    outcome = book.decide(NO_ACCOUNT, test.message, now, hidden)
    steps = outcome.joined.steps
    names = [rule.name for rule in outcome.rules]
    expected, found = shown(*combined(test.expected)), shown(*combined(steps))
    problem: str | None = None
    if sorted(map(repr, steps)) != sorted(map(repr, test.expected)):
        problem = f"expected {expected}, but it is {found}; {_why(test, outcome, rules, now, hidden)}"
    elif test.rule is not None and test.rule not in names:
        by = " + ".join(names) or "no rule"
        problem = f"expected the rule {test.rule!r}, but {by} decides; {_why(test, outcome, rules, now, hidden)}"
    return TestResult(test.name, expected, found, problem)


def _why(test: RuleTest, outcome: Outcome, rules: Sequence[Rule], now: datetime, hidden: frozenset[str]) -> str:
    """Why the rules decide as they do: those that decide, and those that were meant to."""
    meant = [rule for rule in rules if rule.name == test.rule or (test.rule is None and _does(rule, test.expected))]
    told = [*outcome.rules, *(rule for rule in meant if rule not in outcome.rules)][:MOST_EXPLAINED]
    reasons = [explain(rule, None, test.message, now, hidden) for rule in told]
    said = [f"the rule {each.rule.name!r} {each.result} ({each.why})" for each in reasons]
    if test.rule is not None and not meant:
        said.append(f"there is no enabled rule {test.rule!r} in the file")
    return "; ".join(said) or "no rule matches"


def _does(rule: Rule, expected: Sequence[Step]) -> bool:
    return bool(expected) and any(step in expected for step in steps_of(rule.action_type, rule.parameters))


def _read_test(given: object, number: int) -> RuleTest:
    if not isinstance(given, Mapping):
        raise BadInput("test", "is not an object", "give `mail` and `expect`")
    fields = cast("Mapping[object, Any]", given)
    for key in fields:
        if key not in FIELDS:
            raise BadInput(shown_name(str(key)), "is not a field of a test", suggestion(str(key), FIELDS))
    for needed in ("mail", "expect"):
        if fields.get(needed) is None:
            raise BadInput(needed, "is missing", "a test needs `mail` and `expect`; for nothing, write expect: none")
    mail, rule = fields["mail"], fields.get("rule")
    if not isinstance(mail, Mapping):
        raise BadInput("mail", "is not an object", "write {from: ida@shop.example, subject: Your receipt}")
    if rule is not None and not isinstance(rule, str):
        raise BadInput("rule", "is not the name of a rule", "give its name, or leave it out")
    message = _read_mail(cast("Mapping[object, Any]", mail))
    said = fields.get("name")
    default = f"test {number}: {message.subject or message.sender or 'mail'}"
    name = default if said is None else _line("name", said)
    return RuleTest(name[:LONGEST_NAME], message, _read_expected(fields["expect"]), rule)


def _read_expected(given: object) -> tuple[Step, ...]:
    if given in ("none", [], ["none"]):
        return ()
    items = cast("list[object]", given) if isinstance(given, list) else [given]
    try:
        return read_steps(items)
    except BadInput as error:
        raise BadInput("expect", f"{error.field} {error.problem}", error.remedy) from None


def _read_mail(given: Mapping[object, Any]) -> MessageFacts:
    for key in given:
        if key not in MAIL_FIELDS:
            raise BadInput(f"mail.{shown_name(str(key))}", "is unknown", suggestion(str(key), MAIL_FIELDS))
    raw = _raw(given)
    facts = facts_from_file(parse_message(raw), len(raw))
    more: dict[str, Any] = {}
    if (me := given.get("me")) is not None:
        more["own_addresses"] = frozenset({_address(me)})
    if (labels := given.get("labels")) is not None:
        names = _lines("mail.labels", labels)
        more["labels"] = frozenset(names) | frozenset(each.casefold() for each in names)
    if (attachments := given.get("attachments")) is not None:
        files = _lines("mail.attachments", attachments)
        more["attachments"] = tuple(
            (each, mimetypes.guess_type(each)[0] or "application/octet-stream") for each in files
        )
        more["has_attachment"] = bool(files)
    if (size := given.get("size")) is not None:
        more["size"] = _size(size)
    for name, fact in zip(KNOWN, ("sender_in_contacts", "sender_seen_before", "reply_to_mine"), strict=True):
        if (value := given.get(name)) is not None:
            more[fact] = yes_or_no(f"mail.{name}", value)
    return replace(facts, **more)


def _raw(given: Mapping[object, Any]) -> bytes:
    """The message as it would be sent."""
    headers = [
        f"{name}: {_line(f'mail.{key}', given[key])}" for key, name in HEADERS.items() if given.get(key) is not None
    ]
    others: object = given.get("headers") or {}
    if not isinstance(others, Mapping):
        raise BadInput("mail.headers", "is not an object", "write {List-Unsubscribe: <https://shop.example/u>}")
    for name, value in cast("Mapping[object, object]", others).items():
        if not isinstance(name, str) or not name.isascii() or not name.replace("-", "").isalnum():
            raise BadInput("mail.headers", f"{shown_name(str(name))!r} is not a header name", "write it as List-Id")
        headers.append(f"{name}: {_line(f'mail.headers.{name}', value)}")
    text: object = given.get("text", "")
    if not isinstance(text, str):
        raise BadInput("mail.text", "is not a text", "put it in quotation marks")
    headers += ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit"]
    return "\r\n".join([*headers, "", text]).encode("utf-8", "replace")


def _line(field: str, given: object) -> str:
    shown_as = str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given
    if not isinstance(shown_as, str) or not shown_as.isprintable():
        raise BadInput(field, "is not one line of text", "give a text without line breaks")
    return shown_as


def _lines(field: str, given: object) -> list[str]:
    items = cast("list[object]", given) if isinstance(given, list) else [given]
    return [_line(field, each) for each in items]


def _address(given: object) -> str:
    found = canonical(given) if isinstance(given, str) else None
    if found is None:
        raise BadInput("mail.me", "is not an address", "give the address of the mailbox")
    return found


def _size(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise BadInput("mail.size", "is not a number of bytes", "give a whole number")
    return given
