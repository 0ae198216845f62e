"""Rules in files: written and read back unchanged; invalid ones are refused with place and reason."""

import contextlib
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.rules.conditions import DEEPEST
from postroom.core.rules.documents import MOST_RULES, read_documents, write_documents
from postroom.core.rules.draft import FIELDS, RuleDraft, as_document, check_rule, read_draft, unknown_labels
from support.rule_strategies import drafts, several

RULE: dict[str, Any] = {"name": "shop", "if": {"sender_domain": "shop.example"}, "then": "archive"}


@given(several(drafts()), st.sampled_from(["yaml", "json"]))
def test_what_is_written_is_read_back_the_same(rules: list[RuleDraft], format: Any) -> None:
    assert read_documents(write_documents(rules, format)) == rules if rules else True


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_the_deepest_conditions_that_are_allowed_can_be_written_and_read(format: Any) -> None:
    deepest: dict[str, Any] = {"header_match": {"name": "x", "pattern": "y"}}
    for _ in range(DEEPEST):
        deepest = {"and": [deepest]}
    rules = [RuleDraft("deep", deepest, "archive")]
    assert read_documents(write_documents(rules, format)) == rules


@given(st.text() | st.binary().map(lambda each: each.decode("latin-1")))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    with contextlib.suppress(BadInput):
        read_documents(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x [*x]", "line 1: uses an anchor or alias"),
        ("- &r {name: x}\n- *r", "line 1: uses an anchor or alias"),
        ("- name: x\n  if: {<<: *nothing}", "uses an anchor or alias"),
        ("- !!python/object/apply:os.system [x]", "line 1: uses a tag"),
        ("- name: x\n  ? [a, [b]]\n  : 1", "line 2: has a list or a mapping as a key"),
        ("? {a: 1}\n: 2", "line 1: has a list or a mapping as a key"),
        ("{[a]: 1}", "line 1: has a list or a mapping as a key"),
        ("rules: [", "are not valid YAML (line 1"),
        ("rules: {}", "are not a list"),
        ("rules: []\nmore: 1", "more: is beside `rules`"),
        ("", "are none in this file"),
        ("- 5", "rule 1, rule: is not an object"),
        ("- name: a\n  name: b", "duplicate key"),
        ('{"rules": [{"name": "a", "name": "b"}]}', "name: is given twice"),
        ("[" * 10_000, "nested too deep"),
        ("- {name: x, iff: {has_attachment: true}, then: star}", "rule 1 (x), iff: is not a field of a rule; did you"),
        ("- {name: x, if: {has_attachment: true}, then: star}\n" * 2, "rule 2: has the name of rule 1"),
        ("- {name: x, if: {and: [{sender_domian: a.b}]}, then: star}", "if.and[0].sender_domian: is not a known"),
        ("x" * 1_100_000, "more than 1 MiB"),
    ],
)  # fmt: skip
def test_a_file_that_is_invalid_is_refused_with_where_and_why(text: str, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_documents(text)
    assert told in str(refused.value)


def test_a_billion_laughs_are_refused_before_anything_is_built() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(BadInput, match="anchor"):
        read_documents("\n".join(lines))


def test_more_rules_than_are_allowed_are_refused() -> None:
    with pytest.raises(BadInput, match="at most 10,000"):
        read_documents(json.dumps([5] * (MOST_RULES + 1)))


@pytest.mark.parametrize("start", ["", "rules:\n", "# mine\nrules:\n  # all\n  "])
def test_too_many_rules_are_refused_before_they_are_parsed(start: str) -> None:
    item = f"{start.rpartition(chr(10))[2]}- name: x\n"
    others = f"tests:\n{item}" if start else ""
    with pytest.raises(BadInput, match="there are 10,001; give at most"):
        read_documents(f"{start}- !tag that parsing would refuse\n{item * MOST_RULES}{others}")


def test_lines_that_look_like_rules_are_not_counted_as_such() -> None:
    lines = f"rules:\n  - {json.dumps(RULE)}\ntests:\n" + "  - {mail: {}, expect: none}\n" * 40
    inside = "\n".join(["", "    - not a rule"] * MOST_RULES)
    assert read_documents(lines)[0].name == "shop"
    text = f"- name: shop\n  if: {{has_attachment: true}}\n  then: auto_reply\n  parameters:\n   text: |\n{inside}"
    with pytest.raises(BadInput, match=r"parameters\.text"):
        read_documents(text)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"then": ["archive"]}, "then"),
        ({"parameters": ["label"]}, "parameters"),
        ({"then": "none", "parameters": {"label": "x"}}, "parameters"),
        ({"parameters": {"label": "x"}}, "parameters.label"),
        ({"priority": "high"}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 10**7}, "priority"),
        ({"mode": "loud"}, "mode"),
        ({"enabled": "yes"}, "enabled"),
        ({"scope": "sender"}, "scope_ref"),
        ({"scope": "world"}, "scope"),
        ({"scope_ref": "x"}, "scope_ref"),
        ({"disabled_reason": "x"}, "disabled_reason"),
        ({"description": "x" * 5_000}, "description"),
        ({"if": {"subject_contains": "x" * 2_000}}, "if.subject_contains"),
        ({"if": {"sender_email": "nobody"}}, "if.sender_email"),
        ({"if": {"sender_domain": "a@b"}}, "if.sender_domain"),
        ({"if": {"to": "x"}}, "if.to"),
        ({"if": {"older_than": "soon"}}, "if.older_than"),
        ({"if": {"header_match": {"nmae": "x"}}}, "if.header_match.nmae"),
        ({"if": {"header_match": {"name": "a b"}}}, "if.header_match.name"),
        ({"if": {"subject_regex": "(a?){1000}b"}}, "if.subject_regex"),
        ({"if": {"sender_domain": "a.b", "subject_contains": "x"}}, "if"),
    ],
)
def test_a_rule_that_is_invalid_is_refused_and_the_field_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_draft({**RULE, **changes})
    assert refused.value.field == field


def test_a_mistyped_field_suggests_the_right_one() -> None:
    rng = random.Random(1)
    for field in FIELDS:
        at = rng.randrange(len(field) - 1) if len(field) > 2 else 0
        mistyped = field[:at] + field[at + 1] + field[at] + field[at + 2 :] if len(field) > 2 else f"{field}f"
        with pytest.raises(BadInput, match="did you mean"):
            read_draft({**RULE, mistyped: "x"})


def test_a_rule_is_written_without_what_goes_without_saying() -> None:
    assert as_document(read_draft(RULE)) == RULE


def test_too_many_conditions_are_refused() -> None:
    with pytest.raises(BadInput, match="1,000 conditions"):
        check_rule({"or": [{"has_attachment": True}] * 1_001}, "star", {})


def test_labels_that_must_be_there_are_found_wherever_the_rule_looks_at_them() -> None:
    look = {"or": [{"not": {"label_present": "Gone"}}, {"label_present": "HERE"}, {"label_present": "Label_1"}]}
    known = frozenset({"here", "Label_1"})
    assert unknown_labels(RuleDraft("a", look, "archive"), known) == {"Gone"}
    assert unknown_labels(RuleDraft("a", RULE["if"], "remove_label", {"label": "Off"}), known) == {"Off"}
    assert unknown_labels(RuleDraft("a", RULE["if"], "apply_label", {"label": "New"}), known) == frozenset()
