"""Sieve scripts, to and from rules."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.rules.conditions import MessageFacts, Seen, as_test, read_conditions
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Imported
from postroom.core.rules.sieve import read_sieve_rules, write_sieve_rules
from support.rule_strategies import drafts, several


def condition(test: str) -> Any:
    imported = read_sieve_rules(f"if {test} {{ keep; stop; }}")
    assert imported.left_out == []
    return imported.drafts[0].conditions


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ('header :contains "Subject" "chess"', {"subject_contains": "chess"}),
        ('header :is "subject" "Hi (you)"', {"subject_regex": r"^Hi \(you\)$"}),
        ('header :matches "subject" "[*] ?x"', {"subject_regex": r"(?s)^\[.*\] .x$"}),
        ('header :contains "List-Id" "club"', {"list_id": "club"}),
        ('header :comparator "i;ascii-casemap" :is "X-Odd" "a"', {"header_match": {"name": "x-odd", "pattern": "^a$"}}),
        ('address :is "from" "ida@shop.example"', {"sender_email": "ida@shop.example"}),
        ('address :domain "from" "shop.example"', {"sender_domain": "shop.example"}),
        ('address :matches "from" "*@shop.example"', {"sender_domain": "shop.example"}),
        ('address :is ["To", "Cc"] "me@x.example"', {"to": "me@x.example"}),
        ('address :domain :is "to" "x.example"', {"to": "@x.example"}),
        ('exists "List-Id"', {"header_match": {"name": "List-Id"}}),
        ('not exists "a"', {"not": {"header_match": {"name": "a"}}}),
        ('body :text :contains "pay"', {"body_contains": "pay"}),
        (
            'anyof (header :contains "subject" ["a", "b"], not address "from" "c@d.example")',
            {
                "or": [
                    {"or": [{"subject_contains": "a"}, {"subject_contains": "b"}]},
                    {"not": {"sender_email": "c@d.example"}},
                ]
            },
        ),
    ],
)
def test_a_test_stands_for_conditions(test: str, expected: dict[str, Any]) -> None:
    assert condition(test) == expected


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        ('address :contains "from" "news"', '"X" <a.news@b.example>', True),
        ('address :contains "from" "news"', '"Good news" <a@b.example>', False),
        ('address :localpart :is "from" "bob"', "Bob <bob@x.example>", True),
        ('address :localpart :is "from" "bob"', "<jimbob@x.example>", False),
        ('address :domain :matches "from" "*.example"', "<a@b.example>", True),
        ('address :domain :matches "from" "*.example"', "<a@b.example.org>", False),
        ('address :matches "from" "a?c@*"', "Abc <abc@x.example>", True),
    ],
)
def test_a_test_of_addresses_looks_at_addresses_only(test: str, value: str, holds: bool) -> None:
    message = MessageFacts("", "", (("From", value),), frozenset())
    assert as_test(read_conditions(condition(test)))(Seen(message, None)) is holds


def told(imported: Imported) -> set[tuple[str, str]]:
    return {(each.where, each.what) for each in imported.left_out}


ACTIONS = [
    ("fileinto :copy \"Club\"", "apply_label", {"label": "Club"}),
    ("fileinto :copy \"INBOX.Club\"", "apply_label", {"label": "Club"}),
    ('fileinto "Archive"', "archive", {}),
    ('fileinto "Trash"', "trash", {}),
    ('fileinto "INBOX"', "none", {}),
    ("discard", "trash", {}),
    ("keep", "none", {}),
    ('addflag "\\\\Seen"', "mark_read", {}),
    ('setflag "\\\\Flagged"', "star", {}),
    ('redirect "boss@work.example"', "forward", {"to": "boss@work.example"}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "action", "parameters"), ACTIONS)
def test_a_command_stands_for_an_action(command: str, action: str, parameters: dict[str, Any]) -> None:
    imported = read_sieve_rules(f'if exists "a" {{ {command}; stop; }}')
    [draft] = imported.drafts
    assert (draft.action_type, draft.parameters, imported.left_out) == (action, parameters, [])
    assert draft.enabled is (action != "forward")


def test_branches_become_rules_in_their_order_and_else_is_what_they_leave() -> None:
    imported = read_sieve_rules('if exists "a" { discard; } elsif exists "b" { keep; } else { addflag "\\\\Seen"; }')
    a, b = {"header_match": {"name": "a"}}, {"header_match": {"name": "b"}}
    assert [(draft.conditions, draft.action_type) for draft in imported.drafts] == [
        (a, "trash"),
        (b, "none"),
        ({"not": {"or": [a, b]}}, "mark_read"),
    ]
    assert [draft.priority for draft in imported.drafts] == [100, 101, 102]


def test_a_branch_inside_another_needs_both_tests() -> None:
    [draft] = read_sieve_rules('if exists "a" { if exists "b" { discard; stop; } }').drafts
    assert draft.conditions == {"and": [{"header_match": {"name": "a"}}, {"header_match": {"name": "b"}}]}


def test_what_does_not_come_over_is_reported_with_its_line() -> None:
    imported = read_sieve_rules(
        """require ["vacation"];
if size :over 100K {
    discard;
}
if header :contains "subject" "x" {
    fileinto "Club";
    addflag "\\\\Seen";
    notify;
}
vacation "away";
"""
    )
    assert [(draft.action_type, draft.enabled) for draft in imported.drafts] == [("apply_label", True)]
    assert told(imported) >= {
        ("line 2", "if"),
        ("line 6", "fileinto"),
        ("line 7", "addflag"),
        ("line 8", "notify"),
        ("line 10", "vacation"),
    }


def test_what_follows_a_lost_branch_that_stops_waits_for_review() -> None:
    imported = read_sieve_rules('if size :over 1M { keep; stop; } if exists "b" { discard; stop; }')
    [draft] = imported.drafts
    assert not draft.enabled
    assert "before it" in (draft.disabled_reason or "")


def test_what_follows_a_lost_branch_that_does_not_stop_is_free() -> None:
    imported = read_sieve_rules('if size :over 1M { addflag "\\\\Seen"; } if exists "b" { discard; stop; }')
    assert [draft.enabled for draft in imported.drafts] == [True]


def test_branches_behind_a_lost_one_wait_for_review_and_its_else_is_lost_too() -> None:
    imported = read_sieve_rules('if envelope "from" "x" { keep; } elsif exists "b" { discard; } else { discard; }')
    assert [(draft.action_type, draft.enabled) for draft in imported.drafts] == [("trash", False)]
    assert told(imported) == {("line 1", "if"), ("line 1", "else")}


def test_a_branch_of_which_no_action_comes_over_still_keeps_its_mail_from_the_others() -> None:
    imported = read_sieve_rules('if exists "a" { vacation "x"; } elsif exists "b" { discard; }')
    assert [(draft.action_type, draft.enabled) for draft in imported.drafts] == [("none", True), ("trash", True)]


def test_a_comment_of_a_webmail_program_names_the_rule() -> None:
    script = '# rule:[Chess club]\nif exists "a" { discard; stop; }\n/* x */ if exists "b" { discard; stop; }'
    assert [draft.name for draft in read_sieve_rules(script).drafts] == ["Chess club", "Sieve line 3: if"]


def test_texts_of_many_lines_and_escapes_are_understood() -> None:
    script = 'if header :contains "subject" text:\r\n..x\r\n.\r\n { keep; stop; }'
    assert read_sieve_rules(script).drafts[0].conditions == {"subject_contains": ".x\r\n"}
    assert condition(r'header :contains "subject" "a \"b\" \\ c"') == {"subject_contains": 'a "b" \\ c'}


@pytest.mark.parametrize(
    "script",
    [
        *("if", "if true {", "}", "if header [ {}", "keep", "if anyof (", "if anyof () { keep; }", '"x";', "€"),
        *('if exists "a', "if true {" * 50, "if not " + "not " * 500 + "true {}", "text:\nnever ended"),
        "x" * (1024 * 1024 + 1),
    ],
)
def test_what_is_no_sieve_is_refused_with_its_line(script: str) -> None:
    with pytest.raises(BadInput):
        read_sieve_rules(script)


@given(st.text(st.sampled_from('if {}();"\\ :[],#/*\nkeepnotext'), max_size=60))
def test_no_script_does_more_than_be_refused(script: str) -> None:
    with contextlib.suppress(BadInput):
        read_sieve_rules(script)


@given(several(drafts()))
def test_exported_scripts_are_read_back_as_the_same_rules(rules: list[RuleDraft]) -> None:
    exported = write_sieve_rules(rules)
    imported = read_sieve_rules(exported.text)
    assert imported.left_out == []
    said = [draft for draft in rules if draft.name not in {each.where for each in exported.left_out}]
    for before, after in zip(said, imported.drafts, strict=True):
        assert (before.action_type, before.parameters) == (after.action_type, after.parameters)
        if before.scope == "global":
            assert _flat(before.conditions) == _flat(after.conditions)


def _flat(condition: Any) -> Any:
    """One part alone is the part itself, to Sieve."""
    ((kind, argument),) = condition.items()
    match kind:
        case "and" | "or":
            parts = [_flat(each) for each in argument]
            return parts[0] if len(parts) == 1 else {kind: parts}
        case "not":
            return {"not": _flat(argument)}
        case "header_match":
            return {kind: {**argument, "name": argument["name"].lower()}}
        case _:
            return {kind: argument}
