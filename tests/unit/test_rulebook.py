"""A Rulebook decides exactly as trying one rule after another; hostile patterns cost it little."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.core.rules.conditions import read_conditions
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.patterns import STEPS, PatternRefused, TextSet, pattern_of, utf8
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rule_index import ADDRESS_KINDS, WORD_FIELDS, needed_keys
from postroom.core.rules.rulebook import Rulebook
from support.loop_watch import GOOD_SHARE, LoopWatch
from support.naive_rules import naive_first_match
from support.processor_time import least_cost
from support.scale import scale

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
ACCOUNTS = [UUID(int=1), UUID(int=2)]
SENDERS = ["ida@shop.example", "Mara@x.example", "no-reply@shop.example", "strasse@x.example"]
DOMAINS = ["shop.example", "X.example", "other.example"]
WORDS = ["invoice", "Rechnung", "STRASSE", "straße", "ab", "a", "42", "ß", "İ", "news letter"]
PATTERNS = [r"invoice \d+", "^re:", "a|b", r"(a|b)*c$", "^$", ".", r"\bab\b", "str(ss|ß)e"]
NAMES = ["List-Id", "precedence", "X-Odd"]
LABELS = ["INBOX", "Receipts", "Label_7", "receipts"]

PEOPLE = ["Ida Holm <ida@shop.example>", "Mara <mara@x.example>", "<strasse@x.example>", "Holm AB <a@holm.example>"]
PEOPLE_HEADERS = ["From", "To", "Cc", "Bcc", "Reply-To", "Delivered-To"]
PHRASES = [
    "invoice",
    "Rechnung 42",
    '"ab a"',
    '"news letter" A',
    "STRASSE",
    "café",
    "re: b",
    "holm",
    "shop.example",
    "42",
]
FILES = [("invoice 42.PDF", "application/pdf"), ("café.png", "image/png"), ("a", "text/calendar")]

texts = st.lists(
    st.sampled_from([*WORDS, "re:", "b", "c", "\n", "é", "cafe\u0301", "a, b", "der", "und"]), max_size=6
).map(" ".join)


def _condition(drawn: tuple[str, Any]) -> Any:
    return {drawn[0]: drawn[1]}


leaves: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(SENDERS).map(lambda each: {"sender_email": each}),
    st.sampled_from(DOMAINS).map(lambda each: {"sender_domain": each}),
    st.sampled_from([*SENDERS, "@shop.example", "@X.example"]).map(lambda each: {"to": each}),
    st.sampled_from(WORDS).map(lambda each: {"subject_contains": each}),
    st.sampled_from(WORDS).map(lambda each: {"body_contains": each}),
    st.sampled_from(PATTERNS).map(lambda each: {"subject_regex": each}),
    st.sampled_from(NAMES).map(lambda each: {"header_match": {"name": each}}),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(PATTERNS)).map(
        lambda each: {"header_match": {"name": each[0], "pattern": each[1]}}
    ),
    st.sampled_from(LABELS).map(lambda each: {"label_present": each}),
    st.sampled_from(WORDS).map(lambda each: {"list_id": each}),
    st.booleans().map(lambda each: {"has_attachment": each}),
    st.tuples(st.sampled_from(["older_than", "newer_than"]), st.sampled_from(["1h", "7d", "2w"])).map(_condition),
    st.tuples(st.sampled_from(["sent_before", "sent_after"]), st.sampled_from(["2026-11-15", "2026-11-01"])).map(
        _condition
    ),
    st.tuples(st.sampled_from(["larger", "smaller"]), st.sampled_from(["1K", 2_000, "2000"])).map(_condition),
    st.tuples(st.sampled_from(sorted(WORD_FIELDS)), st.sampled_from(PHRASES)).map(_condition),
    st.tuples(st.sampled_from(ADDRESS_KINDS), st.sampled_from([*SENDERS, "@shop.example", "@X.example"])).map(
        _condition
    ),
    st.tuples(
        st.sampled_from(
            ["from_me", "to_me", "cc_me", "bcc_me", "sender_in_contacts", "sender_seen_before", "reply_to_mine"]
        ),
        st.booleans(),
    ).map(_condition),
    st.sampled_from(["application/pdf", "image/*", "text/plain"]).map(lambda each: {"attachment_type": each}),
    st.sampled_from(["promotions", "finance", "newsletters"]).map(lambda each: {"category": each}),
    st.sampled_from(["news.example", "Ab@news.example"]).map(lambda each: {"list": each}),
    st.sampled_from(["de", "unknown"]).map(lambda each: {"language": each}),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"and": each}),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"or": each}),
        inner.map(lambda each: {"not": each}),
    ),
    max_leaves=6,
)
scopes = st.one_of(
    st.just(("global", None)),
    st.sampled_from(ACCOUNTS).map(lambda each: ("account", str(each))),
    st.sampled_from(DOMAINS).map(lambda each: ("domain", each)),
    st.sampled_from(SENDERS).map(lambda each: ("sender", each)),
)
messages = st.builds(
    MessageFacts,
    st.sampled_from([*SENDERS, ""]).map(str.lower),
    texts,
    st.lists(
        st.tuples(st.sampled_from(NAMES), texts)
        | st.tuples(st.sampled_from(PEOPLE_HEADERS), st.sampled_from(PEOPLE))
        | st.tuples(st.just("List-ID"), st.sampled_from(["<news.example>", "<ab.news.example>"])),
        max_size=4,
    ).map(tuple),
    st.frozensets(st.sampled_from([*LABELS, "CATEGORY_PROMOTIONS"])),
    texts,
    st.booleans(),
    st.lists(st.sampled_from(SENDERS).map(str.lower), max_size=2).map(tuple),
    st.none() | st.sampled_from([NOW, NOW - timedelta(hours=1), NOW - timedelta(days=30)]),
    st.none() | st.sampled_from([1_024, 1_500, 2_000, 2_001]),
    st.none() | st.lists(st.sampled_from(FILES), max_size=2).map(tuple),
    st.none() | st.just(frozenset({"mara@x.example"})),
    st.none() | st.frozensets(st.sampled_from(["finance", "newsletters"])),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
)


def rule(number: int, conditions: Any, **fields: Any) -> Rule:
    given: dict[str, Any] = {"scope": "global", "scope_ref": None, "priority": 100, **fields}
    return Rule(
        UUID(int=number), f"rule {number}", conditions=conditions, action_type="archive", parameters={}, **given
    )


rules = st.lists(
    st.tuples(trees, scopes, st.integers(0, 3), st.booleans()),
    max_size=12,
).map(
    lambda drawn: [
        rule(number, tree, scope=scope, scope_ref=ref, priority=priority, shadow=shadow)
        for number, (tree, (scope, ref), priority, shadow) in enumerate(drawn)
    ]
)


@settings(max_examples=scale(80, 20_000))
@given(rules, st.lists(messages, min_size=1, max_size=4))
def test_a_rulebook_decides_as_one_rule_after_another_would(given_rules: list[Rule], mail: list[MessageFacts]) -> None:
    book = Rulebook(reversed(given_rules))
    for message in mail:
        matched, shadowed = naive_first_match(given_rules, ACCOUNTS[0], message, NOW)
        assert book.decide(ACCOUNTS[0], message, NOW) == Outcome(matched, (), tuple(shadowed))


MAIL = MessageFacts(
    "ida@shop.example",
    "Invoice 42",
    (("List-Id", "<news.shop.example>"),),
    frozenset({"INBOX"}),
    "please pay",
    to=("mara@x.example",),
    sent_at=NOW - timedelta(days=8),
)


def test_shadow_rules_before_the_match_are_reported_and_those_behind_it_are_not() -> None:
    book = Rulebook(
        [
            rule(1, {"sender_domain": "shop.example"}, shadow=True),
            rule(2, {"subject_contains": "invoice"}),
            rule(3, {"subject_contains": "42"}, shadow=True),
        ]
    )
    outcome = book.decide(ACCOUNTS[0], MAIL, NOW)
    assert outcome.matched is not None
    assert (outcome.matched.name, [each.name for each in outcome.shadowed]) == ("rule 2", ["rule 1"])


def test_broken_rules_are_known_before_any_message_comes() -> None:
    nonsense = rule(1, {"and": [{"sender_domain": "nobody.example"}, {"subject_regex": "("}]})
    out_of_scope = rule(2, {"has_attachment": True}, scope="domian", scope_ref="x")
    book = Rulebook([nonsense, out_of_scope, rule(3, {"label_present": "INBOX"})])
    assert [(each.name, reason.partition(":")[0]) for each, reason in book.broken] == [
        ("rule 1", "if.and[1].subject_regex"),
        ("rule 2", "scope"),
    ]
    outcome = book.decide(ACCOUNTS[0], MAIL, NOW)
    assert outcome.broken == book.broken
    assert outcome.matched is not None
    assert outcome.matched.name == "rule 3"


def test_rules_that_look_at_what_is_not_here_are_skipped() -> None:
    book = Rulebook([rule(1, {"not": {"body_contains": "never"}}), rule(2, {"sender_domain": "shop.example"})])
    assert book.decide(ACCOUNTS[0], MAIL, NOW).matched == book.decide(ACCOUNTS[0], MAIL, NOW, frozenset()).matched
    outcome = book.decide(ACCOUNTS[0], MAIL, NOW, frozenset({"body_contains"}))
    assert outcome.matched is not None
    assert outcome.matched.name == "rule 2"


@pytest.mark.parametrize(
    ("conditions", "slots"),
    [
        ({"and": [{"body_contains": "x"}, {"sender_domain": "a.example"}]}, {"domain"}),
        ({"or": [{"sender_email": "a@b.example"}, {"subject_contains": "x"}]}, {"sender", "subject"}),
        ({"or": [{"sender_email": "a@b.example"}, {"has_attachment": True}]}, None),
        ({"not": {"sender_email": "a@b.example"}}, None),
    ],
)
def test_a_rule_is_filed_under_what_every_message_it_matches_has(conditions: Any, slots: set[str] | None) -> None:
    keys = needed_keys(read_conditions(conditions))
    assert (None if keys is None else {slot for slot, _ in keys}) == slots


@pytest.mark.parametrize("literal", [True, False])
def test_a_set_that_cannot_tell_asks_one_by_one(literal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many together for the memory of the automaton, or a text longer than the patterns look."""
    monkeypatch.setattr("postroom.core.rules.patterns.SET_MEMORY", 1)
    found = TextSet(["abc", "xyz"], literal=literal).found_in("xabcx")
    assert set(found) >= {"abc"}


class OutOfMemory:
    """As RE2's set answers when its automaton has no memory left: with nothing, and without an error."""

    @staticmethod
    def SearchSet(_options: object) -> "OutOfMemory":  # noqa: N802
        return OutOfMemory()

    def Add(self, _pattern: str) -> None: ...  # noqa: N802

    def Compile(self) -> None: ...  # noqa: N802

    def Match(self, _text: bytes) -> list[int]:  # noqa: N802
        return []


@pytest.mark.parametrize("literal", [True, False])
def test_a_set_that_ran_out_of_memory_hides_no_match(literal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("re2.Set", OutOfMemory)
    assert set(TextSet(["abc", "xyz"], literal=literal).found_in("xabcx")) >= {"abc"}


HOSTILE = [
    r"(a+)+$",
    r"(a|a)*b",
    r"(a|aa)+$",
    r"(.*)*x",
    r"(a?){700}b",
    r"[ab]*a[ab]{900}c",
    r"a.{0,100}b.{0,100}c",
    r"(\w{0,300})$z",
]
TEXTS = {"same": "a" * 102_400 + "!", "mixed": "abba" * 25_600, "wide": "aä" * 51_200}


# It reads every character of the texts above, and finds nothing.
READING = r"[a-zä]*9"


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_over_100_kib_costs_no_more_than_as_far_as_it_looks(pattern: str) -> None:
    """Against what RE2 takes for that part, and what it takes to read all of it: never against the clock."""
    compiled = pattern_of(pattern)
    assert compiled.reach * compiled.size <= STEPS
    for text in TEXTS.values():
        looked_at = utf8(text, compiled.reach)
        bound = 20 * (least_cost(lambda part=looked_at: compiled.compiled.search(part)) + _cost_of_reading(text))
        message = MessageFacts("a@b.example", text, (("X-Odd", text),), frozenset(), text)
        for condition in ({"subject_regex": pattern}, {"header_match": {"name": "x-odd", "pattern": pattern}}):
            book = Rulebook([rule(1, condition)])
            assert least_cost(lambda book=book, seen=message: book.decide(ACCOUNTS[0], seen, NOW)) < bound


def _cost_of_reading(text: str) -> float:
    return least_cost(lambda: pattern_of(READING).finds(text))


def test_usual_patterns_see_all_of_100_kib() -> None:
    text = "a" * 102_400 + " invoice 42"
    assert (
        Rulebook([rule(1, {"subject_regex": r"invoice \d+$"})])
        .decide(ACCOUNTS[0], MessageFacts("a@b.example", text, (), frozenset()), NOW)
        .matched
    )


def test_a_pattern_too_large_to_be_quick_is_refused_with_the_remedy() -> None:
    with pytest.raises(PatternRefused, match="smaller counts"):
        pattern_of("(a?){1000}b")
    assert pattern_of(r"(\w{0,300})$z").reach < STEPS


async def test_a_thread_with_hostile_work_leaves_the_event_loop_to_everybody_else() -> None:
    """As a caller does it that asks `is_heavy` first."""
    book = Rulebook([rule(number, {"subject_regex": pattern}) for number, pattern in enumerate(HOSTILE)])
    message = MessageFacts("a@b.example", TEXTS["same"], (), frozenset(), TEXTS["mixed"])
    assert book.is_heavy(message)
    assert not book.is_heavy(MAIL)
    by_header = Rulebook([rule(1, {"header_match": {"name": "X-Odd", "pattern": HOSTILE[-1]}})])
    assert by_header.is_heavy(replace(MAIL, headers=(("x-odd", TEXTS["same"]),)))
    assert not by_header.is_heavy(replace(MAIL, headers=(("x-other", TEXTS["same"]),)))
    by_text = Rulebook([rule(1, {"body_contains": "pay"})])
    assert by_text.is_heavy(replace(MAIL, body_text="a" * 500_000))

    async def deciding() -> Coroutine[Any, Any, object]:
        return asyncio.to_thread(book.decide, ACCOUNTS[0], message, NOW)

    share = await LoopWatch().best(deciding)
    assert share.worst <= GOOD_SHARE, share
