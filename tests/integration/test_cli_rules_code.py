"""`postroom rules check`, `diff` and `apply`: rules as code."""

from pathlib import Path

import pytest

from support.shell import Shell

RULES = """
rules:
  - {name: receipts, if: {subject_words: receipt}, actions: [apply_label Receipts, archive]}
  - {name: lists, if: {header_match: {name: List-Id}}, then: archive}
tests:
  - mail: {from: shop@z.example, subject: Your receipt}
    expect: [apply_label Receipts, archive]
    rule: receipts
  - name: a list
    mail: {from: a@b.example, subject: Hello, headers: {List-Id: <dev.b.example>}}
    expect: archive
  - mail: {from: ida@x.example, subject: Dinner}
    expect: none
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def changed(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def names(shell: Shell) -> list[str]:
    assert shell("rules", "list", "--json") == 0
    return [rule["name"] for rule in shell.json()]


def test_tests_in_the_file_are_run_without_a_database(shell: Shell, file: Path, tmp_path: Path) -> None:
    assert shell("rules", "check", "rules.yaml") == 0
    assert shell.out == "ok    test 1: Your receipt\nok    a list\nok    test 3: Dinner\n2 rules; 3 of 3 tests pass.\n"
    assert not (tmp_path / "postroom-data").exists()


def test_a_test_that_fails_is_told_with_the_reason_and_nothing_is_applied(shell: Shell, file: Path) -> None:
    changed(file, "subject_words: receipt", "subject_words: invoice")
    for command in (("check",), ("apply", "--yes")):
        assert shell("rules", *command, "rules.yaml") == 1
        assert "test 1: Your receipt: expected apply_label Receipts, archive, but it is none" in shell.err
        assert "the rule 'receipts' does not match (subject_words invoice: " in shell.err
        assert "1 of 3 tests fail" in shell.err
    assert shell("migrate") == 0
    assert names(shell) == []


def test_the_rule_that_decides_may_be_expected_too(shell: Shell, file: Path) -> None:
    changed(file, "rule: receipts", "rule: lists")
    assert shell("rules", "check", "rules.yaml") == 1
    assert "expected the rule 'lists', but receipts decides; the rule 'receipts' matches" in shell.err


def test_the_plan_is_shown_applied_once_and_then_there_is_no_difference(shell: Shell, file: Path) -> None:
    assert shell("rules", "diff", "rules.yaml") == 2
    assert shell.out == "+ receipts\n+ lists\n2 added, 0 changed, 0 removed; 0 as in the file.\n"
    assert shell("rules", "apply", "rules.yaml") == 2
    assert "--yes: is missing" in shell.err
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell.out.endswith("Applied: 2 added, 0 changed, 0 removed.\n")
    assert names(shell) == ["receipts", "lists"]
    assert shell("rules", "diff", "rules.yaml") == 0
    assert shell.out == "No difference: 2 as in the file.\n"
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell.out == "No difference: 2 as in the file.\n"


def test_changes_show_their_fields_and_what_the_file_no_longer_has_is_removed(shell: Shell, file: Path) -> None:
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    changed(file, "  - {name: lists, if: {header_match: {name: List-Id}}, then: archive}\n", "")
    changed(file, "actions: [apply_label Receipts, archive]}", "actions: [apply_label Receipts, archive], priority: 7}")
    changed(file, "expect: archive", "expect: none")
    assert shell("rules", "diff", "rules.yaml") == 2
    assert shell.out == ("~ receipts\n    priority: - → 7\n- lists\n0 added, 1 changed, 1 removed; 0 as in the file.\n")
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert names(shell) == ["receipts"]
    assert shell("rules", "diff", "rules.yaml") == 0


def test_rules_made_otherwise_are_left_alone_unless_all_are_pruned(shell: Shell, file: Path) -> None:
    assert shell("rules", "add", "--name", "mine", "--if", '{"subject_words": "x"}', "--then", "star") == 0
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell("rules", "diff", "rules.yaml") == 0
    assert shell.out == "No difference: 2 as in the file, 1 others left alone.\n"
    assert shell("rules", "diff", "rules.yaml", "--prune-all") == 2
    assert shell.out.startswith("- mine\n")
    assert shell("rules", "apply", "rules.yaml", "--prune-all", "--yes") == 0
    assert names(shell) == ["receipts", "lists"]


def test_a_rule_changed_by_hand_is_told_and_put_back(shell: Shell, file: Path) -> None:
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell("rules", "edit", "lists", "--then", "trash") == 0
    assert shell("rules", "diff", "rules.yaml") == 2
    assert shell.out.startswith("~ lists  (changed by hand since it was applied)\n    then: trash → archive\n")
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell("rules", "diff", "rules.yaml") == 0


def test_a_rule_of_the_same_name_is_taken_over(shell: Shell, file: Path) -> None:
    assert shell("rules", "add", "--name", "lists", "--if", '{"subject_words": "x"}', "--then", "star") == 0
    assert shell("rules", "diff", "rules.yaml") == 2
    assert "~ lists  (not made by apply; taken over" in shell.out
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert shell("rules", "diff", "rules.yaml") == 0


def test_rules_of_equal_priority_are_tried_in_the_order_of_the_file(shell: Shell, file: Path) -> None:
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    changed(file, "rules:\n", "rules:\n  - {name: first, if: {subject_words: first}, then: star}\n")
    assert shell("rules", "apply", "rules.yaml", "--yes") == 0
    assert "~ receipts  (stored anew, since it is tried in another order)" in shell.out
    assert names(shell) == ["first", "receipts", "lists"]
    assert shell("rules", "diff", "rules.yaml") == 0


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("then: archive", "then: archve", "rule 2 (lists), then: 'archve' is not an action"),
        ("tests:", "test:", "test: is beside `rules`"),
        ("expect: none", "expects: none", "test 3, expects: is not a field of a test; did you mean 'expect'"),
        ("expect: none", "expect: archve", "test 3, expect: actions[0] 'archve' is not an action"),
        ("subject: Dinner", "subjct: Dinner", "test 3, mail.subjct: is unknown"),
        ("subject: Dinner", 'subject: "a\\nBcc: x"', "test 3, mail.subject: is not one line of text"),
        ("from: ida@x.example", "me: ida", "test 3, mail.me: is not an address"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(
    shell: Shell, file: Path, before: str, after: str, says: str
) -> None:
    changed(file, before, after)
    assert shell("rules", "check", "rules.yaml") == 2
    assert says in shell.err
    assert shell("rules", "diff", "rules.yaml") == 1
    assert says in shell.err


def test_the_tests_in_a_file_do_not_disturb_other_commands(shell: Shell, file: Path) -> None:
    assert shell("rules", "add", "rules.yaml") == 0
    assert names(shell) == ["receipts", "lists"]
