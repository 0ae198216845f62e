"""Sieve scripts, to and from rules. tests/unit/test_sieve_equivalence.py runs them on mail."""

import contextlib
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.steps import Step, combined, shown
from postroom.core.errors import BadInput
from postroom.core.rules.conditions import as_test, read_conditions
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import IMPORTED, Imported
from postroom.core.rules.facts import MessageFacts, Seen
from postroom.core.rules.sieve import MOST_RULES, read_sieve_rules
from postroom.core.rules.sieve_writing import write_sieve_rules
from support.foreign_rules.mailbox import State, decided, facts_of, rulebook_of
from support.foreign_rules.sieve import run
from support.foreign_rules.sieve_scripts import random_message, random_script
from support.rule_strategies import drafts, several

REQUIRE = 'require ["fileinto", "copy", "imap4flags", "body", "regex", "mailbox"]; '


def condition(test: str) -> Any:
    imported = read_sieve_rules(f"{REQUIRE} if {test} {{ keep; stop; }}")
    assert imported.left_out == []
    return imported.drafts[0].conditions


def on(name: str, pattern: str) -> dict[str, Any]:
    return {"header_match": {"name": name, "pattern": pattern}}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ('header :contains "Subject" "chess"', on("subject", "chess")),
        ('header :is "subject" "Hi (you)"', on("subject", r"^Hi \(you\)$")),
        ('header :matches "subject" "[*] ?x\\\\*"', on("subject", r"^\[.*\] .x\*$")),
        ('header :regex "subject" "^re:|fwd"', on("subject", "^re:|fwd")),
        ('header :comparator "i;ascii-casemap" :is "X-Odd" "a"', on("x-odd", "^a$")),
        ('header :is :comparator "i;octet" "X-Odd" "a"', on("x-odd", "(?-i)^a$")),
        ('header :contains "subject" "Über"', on("subject", "(?-i:Ü)ber")),
        ('header :contains "subject" ""', {"header_match": {"name": "subject"}}),
        ('header "subject" ""', on("subject", "^$")),
        ('address :is "from" "ida@shop.example"', {"from": "ida@shop.example"}),
        ('address :domain "from" "shop.example"', {"from": "@shop.example"}),
        ('address :matches "from" "*@shop.example"', {"from": "@shop.example"}),
        ('address :is ["To", "Cc"] "me@x.example"', {"or": [{"to_header": "me@x.example"}, {"cc": "me@x.example"}]}),
        ('address "sender" "a@x.example"', {"address_match": {"name": "sender", "pattern": r"^a@x\.example$"}}),
        ('exists "List-Id"', {"header_match": {"name": "list-id"}}),
        ('not exists "a"', {"not": {"header_match": {"name": "a"}}}),
        ("size :over 100K", {"larger": 102_400}),
        ("size :under 1M", {"smaller": 1_048_576}),
        ('body :text :contains "pay"', {"body_contains": "pay"}),
        ('allof (true, exists "a", not false)', {"header_match": {"name": "a"}}),
        (
            'anyof (header :contains "subject" ["a", "b"], not address "from" "c@d.example")',
            {"or": [on("subject", "a"), on("subject", "b"), {"not": {"from": "c@d.example"}}]},
        ),
    ],
)
def test_a_test_stands_for_conditions(test: str, expected: dict[str, Any]) -> None:
    assert condition(test) == expected
    read_conditions(expected)


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ('envelope "from" "x"', "the test envelope has no counterpart"),
        ('header :mime :anychild "content-type" "x"', ":mime has no counterpart"),
        ('header :count "ge" "received" "3"', ":count has no counterpart"),
        ('header :comparator "i;ascii-numeric" :is "a" "3"', "only the comparators"),
        ('header :contains "a"', "does not have 2"),
        ('header :regex "a" "\\\\d"', "may mean something else"),
        ('header :contains "bad name" "x"', "name that no message has"),
        ('address :regex "from" "x"', ":regex over addresses"),
        ('address :is :comparator "i;octet" "from" "A@x.example"', "without regard to case"),
        ('address "subject" "x"', "does not hold addresses"),
        ('address :user "from" "x"', ":user has no counterpart"),
        ('address "from" "ü@x.example"', "outside ASCII"),
        ('body :raw :contains "x"', ":raw has no counterpart"),
        ('body :is "x"', "only be searched with :contains"),
        ("size :over", "size does not have"),
        ('hasflag "\\\\Seen"', "the test hasflag"),
        ('currentdate :is "hour" "9"', "the test currentdate"),
    ],
)
def test_a_test_without_counterpart_is_refused_with_its_line(test: str, why: str) -> None:
    imported = read_sieve_rules(f"{REQUIRE}\nif {test} {{ discard; stop; }}")
    [refused] = imported.left_out
    assert imported.drafts == []
    assert refused.where == "line 2"
    assert why in refused.why


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        ('address :contains "from" "news"', '"X" <a.news@b.example>', True),
        ('address :contains "from" "news"', '"Good news" <a@b.example>', False),
        ('address :contains "from" ""', "<a@b.example>", True),
        ('address :is "from" ""', "<a@b.example>", None),
        ('address :localpart :is "from" "bob"', "Bob <bob@x.example>", True),
        ('address :localpart :is "from" "bob"', "<jimbob@x.example>", False),
        ('address :domain :matches "from" "*.example"', "<a@b.example>", True),
        ('address :domain :matches "from" "*.example"', "<a@b.example.org>", False),
        ('address :matches "from" "a?c@*"', "Abc <abc@x.example>", True),
    ],
)
def test_a_test_of_addresses_looks_at_addresses_only(test: str, value: str, holds: bool | None) -> None:
    if holds is None:  # it is never true
        assert read_sieve_rules(f"if {test} {{ keep; stop; }}").drafts == []
        return
    message = MessageFacts("", "", (("From", value),), frozenset())
    assert as_test(read_conditions(condition(test)))(Seen(message, None)) is holds


def actions_of(imported: Imported) -> list[str]:
    return [shown(draft.action_type, draft.parameters) for draft in imported.drafts]


@pytest.mark.parametrize(
    ("commands", "actions"),
    [
        ('fileinto "Club";', "apply_label Club, archive"),
        ('fileinto :copy "Club";', "apply_label Club"),
        ('fileinto :create "INBOX.Club";', "apply_label Club, archive"),
        ('fileinto "Club"; keep;', "apply_label Club"),
        ('fileinto "Club"; fileinto "Chess";', "apply_label Club, apply_label Chess, archive"),
        ('fileinto "Archive";', "archive"),
        ('fileinto "Trash";', "trash"),
        ('fileinto "INBOX";', "none"),
        ("discard;", "trash"),
        ("discard; keep;", "none"),
        ('discard; fileinto "Club";', "apply_label Club, archive"),
        ("keep;", "none"),
        ('addflag "\\\\Seen";', "mark_read"),
        ('setflag ["\\\\Flagged"]; fileinto "Club";', "apply_label Club, archive, star"),
        ('fileinto :flags "\\\\Seen" "Club";', "apply_label Club, archive, mark_read"),
        ('addflag "\\\\Seen"; removeflag "\\\\seen"; discard;', "trash"),
        ('redirect "boss@work.example";', "archive, forward to boss@work.example"),
        ('redirect :copy "boss@work.example";', "forward to boss@work.example"),
        ('redirect "a@b.example"; fileinto "Club";', "apply_label Club, archive, forward to a@b.example"),
        ('redirect :copy "a@b.example"; redirect :copy "c@d.example";', "forward to a@b.example, c@d.example"),
    ],
)
def test_the_commands_of_a_branch_are_one_rule_that_does_all_of_it(commands: str, actions: str) -> None:
    imported = read_sieve_rules(f'{REQUIRE} if exists "a" {{ {commands} stop; }}')
    [draft] = imported.drafts
    assert (actions_of(imported), imported.left_out) == ([actions], [])
    assert (draft.enabled, draft.disabled_reason, draft.continues) == (False, IMPORTED, False)


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ('vacation "away";', "vacation on line 2: it has no counterpart"),
        ('vacation "away"; fileinto "Club";', "vacation on line 2"),
        ('reject "no";', "reject on line 2"),
        ('fileinto "Club"; addflag "\\\\Seen"; keep;', "two copies with different flags"),
        ('fileinto "Trash"; fileinto "Club";', "one copy in the trash"),
        ('addflag "$Junk";', "the flag $junk"),
        ('addflag "variable" "\\\\Seen";', "does not have its 1 arguments"),
        ('redirect "nobody";', "not a mail address"),
        ('fileinto :copy "${folder}";', "variables"),
        ('fileinto :mailboxid "x" "y";', ":mailboxid has no counterpart"),
        ('fileinto "Spam";', "label"),
        ('fileinto "Drafts";', "Drafts is one of Gmail's own places"),
        ('fileinto :copy "INBOX.sent mail";', "sent mail is one of Gmail's own places"),
        ("".join(f'fileinto "f{n}";' for n in range(11)), "actions"),
    ],
)
def test_a_branch_with_a_command_without_counterpart_is_refused_whole(commands: str, why: str) -> None:
    require = REQUIRE.replace("body", "variables")
    script = f'{require}\nif exists "a" {{ {commands} stop; }} if exists "b" {{ discard; stop; }}'
    imported = read_sieve_rules(script)
    [refused] = imported.left_out
    assert refused.where == "line 2"
    assert why in refused.why
    [draft] = imported.drafts
    a, b = {"header_match": {"name": "a"}}, {"header_match": {"name": "b"}}
    assert (draft.conditions, draft.action_type) == ({"and": [{"not": a}, b]}, "trash")


@pytest.mark.parametrize(
    ("command", "extension"),
    [
        ('fileinto "a"', "fileinto"),
        ('redirect :copy "a@b.example"', "copy"),
        ('addflag "\\\\Seen"', "imap4flags"),
        ('keep :flags "\\\\Seen"', "imap4flags"),
    ],
)
def test_what_needs_an_extension_is_refused_if_the_script_does_not_require_it(command: str, extension: str) -> None:
    [refused] = read_sieve_rules(f'if exists "a" {{ {command}; stop; }}').left_out
    assert f"needs the extension {extension}" in refused.why


def outline(script: str) -> list[tuple[Any, str, bool]]:
    imported = read_sieve_rules(REQUIRE + script)
    assert imported.left_out == []
    return [(d.conditions, shown(d.action_type, d.parameters), d.continues) for d in imported.drafts]


A, B, C = ({"header_match": {"name": name}} for name in "abc")


def test_a_branch_that_stops_is_a_rule_and_rules_after_it_need_not_exclude_its_mail() -> None:
    script = 'if exists "a" { discard; stop; } elsif exists "b" { stop; } else { addflag "\\\\Seen"; }'
    assert outline(script) == [
        (A, "trash", False),
        (B, "none", False),
        ({"and": [{"not": A}, {"not": B}]}, "mark_read", False),
    ]


def test_a_branch_that_adds_and_runs_on_is_a_rule_that_continues() -> None:
    script = 'if exists "a" { fileinto "X"; } elsif exists "b" { fileinto "Y"; } if exists "c" { fileinto "Z"; }'
    assert outline(script) == [
        (A, "apply_label X, archive", True),
        ({"and": [{"not": A}, B]}, "apply_label Y, archive", True),
        (C, "apply_label Z, archive", False),
    ]


def test_what_a_later_command_changes_is_followed_to_the_end() -> None:
    assert outline('if exists "a" { fileinto "X"; } if exists "b" { keep; }') == [
        ({"and": [A, B]}, "apply_label X", False),
        (A, "apply_label X, archive", False),
        (B, "none", False),
    ]
    assert outline('if exists "a" { discard; } if exists "b" { fileinto "X"; }') == [
        ({"and": [A, B]}, "apply_label X, archive", False),
        (A, "trash", False),
        (B, "apply_label X, archive", False),
    ]


def test_nested_branches_need_all_their_tests() -> None:
    script = 'if exists "a" { if exists "b" { discard; stop; } fileinto "X"; } if exists "c" { fileinto "Z"; }'
    assert outline(script) == [
        ({"and": [A, B]}, "trash", False),
        (A, "apply_label X, archive", True),
        (C, "apply_label Z, archive", False),
    ]


def test_rules_that_depend_on_a_test_without_counterpart_are_refused_and_those_before_it_are_not() -> None:
    imported = read_sieve_rules(
        'if exists "a" { discard; stop; }\nif envelope "from" "x" { stop; }\nif exists "b" { discard; }'
    )
    assert [draft.conditions for draft in imported.drafts] == [A]
    assert [each.where for each in imported.left_out] == ["line 2", "line 3"]
    assert "it depends on line 2" in imported.left_out[1].why


def test_a_refused_branch_that_only_adds_leaves_the_others_alone() -> None:
    script = f'{REQUIRE}\nif envelope "from" "x" {{ fileinto "X"; }}\nif exists "b" {{ fileinto "Y"; }}\nvacation "x";'
    imported = read_sieve_rules(script)
    assert [draft.conditions for draft in imported.drafts] == [B]
    assert [(each.where, each.what) for each in imported.left_out] == [("line 2", "if"), ("line 4", "vacation")]


def test_what_no_message_reaches_is_told() -> None:
    script = (
        'if exists "a" { discard; stop; }\nif false { discard; }\nif allof (exists "a", exists "b") { keep; stop; }\n'
        'if not true {} else { stop; }\nif exists "c" { discard; }'
    )
    imported = read_sieve_rules(script)
    told = {(each.where, each.why) for each in imported.report() if each.verdict == "can never fire"}
    assert ("line 2", "its test is never true") in told
    assert ("line 3", "'Sieve line 1: trash' decides about all its mail first") in told


def test_what_applies_to_all_mail_is_refused_and_what_applies_to_the_rest_is_not() -> None:
    [refused] = read_sieve_rules(f'{REQUIRE} redirect :copy "a@b.example";').left_out
    assert "applies to all mail" in refused.why
    assert outline('if exists "a" { stop; } fileinto "X";') == [
        (A, "none", False),
        ({"not": A}, "apply_label X, archive", False),
    ]


def test_a_comment_of_a_webmail_program_names_the_rule() -> None:
    script = '# rule:[Chess club]\nif exists "a" { discard; stop; }\n/* x */ if exists "b" { discard; stop; }'
    assert [draft.name for draft in read_sieve_rules(script).drafts] == ["Chess club", "Sieve line 3: trash"]


def test_texts_of_many_lines_and_escapes_are_understood() -> None:
    assert condition("body :contains text:\r\n..x\r\n.\r\n") == {"body_contains": ".x\r\n"}
    assert condition(r'header :contains "subject" "a \"b\" \\ c"') == on("subject", r'a "b" \\ c')


@pytest.mark.parametrize(
    ("script", "place"),
    [
        *(("if", "line 1"), ("if true {", "ends inside"), ("}", "line 1"), ("\nif header [ {}", "line 2")),
        *(("keep", "line 1"), ("if anyof (", "ends too early"), ("if anyof () { keep; }", "line 1")),
        ('"x";', "line 1"),
        *(("\n\n€", "line 3"), ('if exists "a', "line 1"), ("if true {" * 50, "nested too deep")),
        *(("if not " + "not " * 500 + "true {}", "nested too deep"), ("text:\nnever ended", "line 1")),
        *(("elsif true {}", "line 1"), ("if true {} else {} else {}", "line 1"), ("if {}", "line 1")),
        *(("if true;", "line 1"), ("\nkeep;\0", "line 2"), ("if size :over 99999999999999999 {}", "line 1")),
        ("x" * (1024 * 1024 + 1), "1 MiB"),
        ("keep;" * 200_000, "one token too many"),
    ],
)  # fmt: skip
def test_what_is_no_sieve_is_refused_with_its_place(script: str, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_sieve_rules(script)
    assert place in str(refused.value)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("".join(f'if exists "a{n}" {{ addflag "\\\\Seen"; }}\n' for n in range(2_000)), 11),
        ("".join(f'if exists "a{n}" {{ fileinto "{n}"; }}\n' for n in range(150)) + 'if exists "b" { keep; }', 1),
        ("".join(f'if exists "a{n}" {{ discard; stop; }}\n' for n in range(MOST_RULES + 10)), MOST_RULES + 1),
        ("if true { " + "".join(f'if exists "a{n}" {{ keep; }} ' for n in range(2_000)) + "}", 1),
        ("if true {}" + "".join(f'elsif exists "a{n}" {{ keep; stop; }}\n' for n in range(5_000)), None),
        ('if exists "x" {}' + "".join(f'elsif exists "a{n}" {{ keep; stop; }}\n' for n in range(5_000)), 1),
    ],
)
def test_a_script_with_too_many_ways_or_rules_is_refused_from_the_line_where_they_begin(
    script: str, line: int | None
) -> None:
    imported = read_sieve_rules(REQUIRE + script)
    assert [each.where for each in imported.left_out if "too many" in each.why or "more than" in each.why] == (
        [] if line is None else [f"line {line}"]
    )
    assert len(imported.drafts) <= MOST_RULES


@given(st.text(st.sampled_from('if {}();"\\ :[],#/*\nkeepnotext'), max_size=60))
def test_no_script_does_more_than_be_refused(script: str) -> None:
    with contextlib.suppress(BadInput):
        read_sieve_rules(script)


@given(several(drafts()))
def test_exported_scripts_are_read_back_without_a_refusal(rules: list[RuleDraft]) -> None:
    exported = write_sieve_rules(rules)
    imported = read_sieve_rules(exported.text)
    assert imported.left_out == []


def rule(word: str, *steps: Step, continues: bool = False) -> RuleDraft:
    action, parameters = combined(steps)
    return RuleDraft(word, {"subject_contains": word}, action, parameters, continues=continues)


def test_rules_that_continue_and_do_several_things_are_written_as_commands() -> None:
    label, archive, read = Step("apply_label", {"label": "Shop"}), Step("archive"), Step("mark_read")
    text = write_sieve_rules([rule("a", label, continues=True), rule("b", read, archive)]).text
    assert 'if header :contains "subject" "a" {\n    fileinto :copy "Shop";\n}\n' in text
    exported = write_sieve_rules([rule("b", label, archive, read, Step("forward", {"to": "a@b.example"}))])
    for command in ('addflag "\\\\Seen";', 'fileinto "Shop";', 'redirect :copy "a@b.example";', "stop;"):
        assert f"    {command}\n" in exported.text


@pytest.mark.parametrize(
    "rules",
    [
        [rule("a", Step("archive"), continues=True), rule("b", Step("trash"))],
        [rule("a", Step("archive"), continues=True), rule("b", Step("mark_read"))],
        [rule("b", Step("trash"), continues=True)],
        [rule("b", Step("apply_label", {"label": "x"}), Step("trash"))],
        [rule("b", Step("apply_label", {"label": "Trash"}))],
        [rule("b", Step("delete"))],
        [rule("bü", Step("star"))],
        [
            rule("a", Step("forward", {"to": "a@b.example"}), continues=True),
            rule("b", Step("forward", {"to": "c@d.example"})),
        ],
    ],
)
def test_rules_that_sieve_would_do_otherwise_are_not_written(rules: list[RuleDraft]) -> None:
    [left_out] = write_sieve_rules(rules).left_out
    assert left_out.where.startswith("b")


def test_exported_scripts_do_what_the_rules_do() -> None:
    seed = 11
    print(f"seed {seed}")
    rng = Random(seed)
    mail = [(message, facts_of(message)) for message in (random_message(rng) for _ in range(30))]
    compared = 0
    for _ in range(100):
        rules = [
            replace(each, enabled=True, disabled_reason=None) for each in read_sieve_rules(random_script(rng)).drafts
        ]
        exported = write_sieve_rules(rules)
        if exported.left_out or ":regex" in exported.text:
            continue
        book = rulebook_of(rules)
        for message, facts in rng.sample(mail, 5):
            result, ours = run(exported.text, message), decided(book, facts)
            assert set(result.folders) - {"Archive", "Trash"} == ours.labels
            assert (result.inbox is not None, "Trash" in result.folders) == (ours.in_inbox, ours.in_trash)
            assert result.redirects == ours.forwarded
            compared += ours != State()
    assert compared > 20
