"""`postroom rules`: add, show, edit, test and exchange rules on the command line."""

import asyncio
import contextlib
import io
import json
import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from postroom.core.mail.message import read_mail
from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.ids import new_id
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import Signature, list_audit
from postroom.store.rules.rules import keep_rules
from support import storing
from support.clocks import ManualClock
from support.command import POSTROOM, environment
from support.shell import Shell
from support.store.fault_cases_inbox import ENDPOINT, leased_mail
from support.store.job_setup import JobSetup

EML = b"""From: Ida <ida@shop.example>
To: mara@lindqvist.example
Subject: Invoice 42
Date: Sun, 15 Nov 2020 08:00:00 +0000
List-Id: <news.shop.example>

Please pay.
"""
YAML = """
rules:
  - name: invoices
    if: {and: [{sender_domain: shop.example}, {subject_contains: invoice}]}
    then: apply_label
    parameters: {label: Invoices}
  - name: news
    priority: 50
    if: {list_id: other.example}
    then: archive
"""
FILTERS = """<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>
<entry><apps:property name='from' value='ida@shop.example'/><apps:property name='label' value='Shops'/>
<apps:property name='shouldArchive' value='true'/></entry>
<entry><apps:property name='subject' value='report'/><apps:property name='forwardTo' value='boss@work.example'/></entry>
<entry><apps:property name='hasTheWord' value='has:drive'/><apps:property name='shouldTrash' value='true'/></entry>
</feed>
"""


def written(shell: Shell, name: str, text: str | bytes) -> str:
    path = shell.folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def with_labels(shell: Shell, *names: str) -> str:
    """A mailbox that has these labels; its account's id."""

    async def fill() -> str:
        database = SqliteDatabase(shell.folder / "postroom-data" / "postroom.sqlite3")
        now = datetime.now(UTC)
        account = await database.run(
            keep_account(new_id(), "gmail", "gmail:user:mara@lindqvist.example", "mara@lindqvist.example", now)
        )
        seen = [SeenLabel(f"Label_{number}", name, "user") for number, name in enumerate(names)]
        await database.run(sync_labels(account.id, seen, now))
        await database.close()
        return str(account.id)

    return asyncio.run(fill())


def audited(shell: Shell) -> list[tuple[str, str]]:
    async def read() -> list[tuple[str, str]]:
        database = SqliteDatabase(shell.folder / "postroom-data" / "postroom.sqlite3")
        entries = await database.run(list_audit(50))
        await database.close()
        return [(entry.action, entry.actor.partition(":")[0]) for entry in reversed(entries)]

    return asyncio.run(read())


def rules_of(shell: Shell, *options: str) -> list[dict[str, Any]]:
    assert shell("rules", "list", "--json", *options) == 0
    return shell.json()


ADD = ("rules", "add", "--name", "shop", "--if", '{"sender_domain": "shop.example"}', "--then")


def test_a_rule_is_added_from_options_and_shown(shell: Shell) -> None:
    assert shell(*ADD, "apply_label", "--param", "label=Shops", "--priority", "7", "--shadow", "--needs-approval") == 0
    assert shell.out == "shop  added\n"
    [rule] = rules_of(shell)
    assert (rule["action"], rule["parameters"], rule["priority"]) == ("apply_label", {"label": "Shops"}, 7)
    assert (rule["mode"], rule["needs_approval"], rule["version"]) == ("shadow", True, 1)
    assert shell("rules", "show", "shop") == 0
    assert "sender_domain: shop.example" in shell.out
    assert shell("rules", "show", "shop", "--json") == 0
    assert shell.json() == [rule]
    assert audited(shell) == [("rules.add", "cli")]


def test_a_rule_that_a_token_wrote_is_listed_and_confirmed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell(*ADD, "archive") == 0
    sends = RuleDraft("to eve", {"has_attachment": True}, "forward", {"to": "eve@example.net"})

    async def write() -> None:
        database = SqliteDatabase(shell.folder / "postroom-data" / "postroom.sqlite3")
        by_token = Signature(new_id(), "token:7", "admin")
        await database.run(keep_rules([(new_id(), sends)], "refuse", "user", by_token, datetime.now(UTC)))
        await database.close()

    asyncio.run(write())
    assert {rule["name"]: rule["confirmed"] for rule in rules_of(shell)} == {"shop": True, "to eve": False}
    assert shell("rules", "confirm", "--json") == 0
    assert [rule["name"] for rule in shell.json()] == ["to eve"]
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("rules", "confirm", "to eve") == 1
    assert "eve@example.net" in shell.err, "it is shown before it is confirmed"
    assert shell("rules", "confirm", "to eve", "--yes") == 0
    assert shell.out == "to eve  confirmed\n"
    assert all(rule["confirmed"] for rule in rules_of(shell))
    assert ("rules.confirm", "cli") in audited(shell)
    assert shell("rules", "confirm", "to eve", "--yes") == 0
    assert shell.out == "to eve  needed no confirmation\n"


def test_rules_are_added_from_a_file_all_or_none(shell: Shell) -> None:
    assert shell("rules", "add", written(shell, "rules.yaml", YAML)) == 0
    assert [rule["name"] for rule in rules_of(shell)] == ["news", "invoices"]
    more = YAML.replace("invoices", "bills")
    assert shell("rules", "add", written(shell, "more.yaml", more)) == 2
    assert "there is already a rule 'news'" in shell.err
    assert len(rules_of(shell)) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--name", "x", "--if", "{", "--then", "archive"], "--if: is not JSON"),
        (["--name", "x", "--if", '{"sender_domian": "a.b"}', "--then", "archive"], "did you mean 'sender_domain'?"),
        (["--name", "x", "--if", '{"has_attachment": true}', "--then", "archvie"], "did you mean 'archive'?"),
        (["--name", "x", "--if", '{"has_attachment": true}', "--then", "apply_label"], "parameters.label: is missing"),
        (["--name", "x", "--if", '{"subject_regex": "(?=a)"}', "--then", "star"], "is not an RE2 expression"),
        (["--name", "x", "--then", "star"], "if: is missing"),
        (["--name", "x", "--if", '{"has_attachment": true}', "--then", "star", "--scope", "domain"], "scope_ref"),
        (["--name", "x", "--if", '{"has_attachment": true}', "--then", "star", "--param", "y"], "NAME=VALUE"),
    ],
)
def test_a_rule_that_is_invalid_is_refused_with_the_field_and_the_remedy(
    shell: Shell, arguments: list[str], told: str
) -> None:
    assert shell("rules", "add", *arguments) == 2
    assert told in shell.err
    assert len(shell.err.splitlines()) == 1


def test_a_rule_that_looks_at_a_label_nobody_has_is_refused_and_one_that_applies_it_is_not(shell: Shell) -> None:
    assert shell("migrate") == 0
    with_labels(shell, "Receipts")
    look = ("rules", "add", "--name", "look", "--then", "archive", "--if")
    assert shell(*look, '{"not": {"label_present": "Recipts"}}') == 2
    assert "which no mailbox has" in shell.err
    assert shell(*look, '{"label_present": "receipts"}') == 0
    assert shell(*ADD, "apply_label", "--param", "label=Shops") == 0
    assert "is created when needed" in shell.err
    assert shell("rules", "edit", "look", "--if", '{"label_present": "Soon"}', "--allow-missing") == 0


def test_a_rule_is_edited_only_as_far_as_is_reported(shell: Shell) -> None:
    assert shell(*ADD, "apply_label", "--param", "label=Shops") == 0
    assert shell("rules", "edit", "shop", "--priority", "3", "--rename", "shops", "--approval", "yes") == 0
    assert shell.out == "shops  changed, version 2\n"
    [rule] = rules_of(shell)
    assert (rule["name"], rule["priority"], rule["parameters"]) == ("shops", 3, {"label": "Shops"})
    assert (rule["needs_approval"], rule["mode"]) == (True, "active")
    assert shell("rules", "edit", "shops", "--then", "trash", "--version", "1") == 2
    assert "was changed meanwhile; it is version 2" in shell.err
    assert shell("rules", "edit", "shops", "--then", "trash", "--version", "2") == 0
    assert rules_of(shell)[0]["parameters"] == {}
    assert shell("rules", "edit", "shops") == 2
    one = written(shell, "one.yaml", "name: shops\nif: {has_attachment: true}\nthen: star\n")
    assert shell("rules", "edit", "shops", "--file", one) == 0
    assert rules_of(shell)[0]["action"] == "star"


def test_a_rule_is_disabled_enabled_and_removed(shell: Shell) -> None:
    assert shell(*ADD, "archive") == 0
    assert shell("rules", "disable", "shop", "--reason", "too eager") == 0
    assert rules_of(shell)[0]["disabled_reason"] == "too eager"
    assert shell("rules", "enable", "shop") == 0
    assert rules_of(shell)[0]["enabled"] is True
    assert shell("rules", "remove", "shop", "--json") == 0
    assert rules_of(shell) == []
    assert shell("rules", "enable", "shop") == 1
    assert audited(shell) == [
        ("rules.add", "cli"),
        ("rules.disable", "cli"),
        ("rules.enable", "cli"),
        ("rules.remove", "cli"),
    ]


def test_a_rule_for_one_account_names_it_by_its_address(shell: Shell) -> None:
    assert shell("migrate") == 0
    account = with_labels(shell)
    assert shell(*ADD, "archive", "--scope", "account", "--for", "mara@lindqvist.example") == 0
    assert rules_of(shell)[0]["scope_ref"] == account
    assert shell("rules", "edit", "shop", "--scope", "sender", "--for", "Ida@Shop.example") == 0
    assert rules_of(shell)[0]["scope_ref"] == "ida@shop.example"


def test_rules_are_tried_on_a_message_and_every_one_is_explained(shell: Shell) -> None:
    assert shell("rules", "add", written(shell, "rules.yaml", YAML)) == 0
    assert shell(*ADD, "archive", "--scope", "sender", "--for", "other@x.example") == 0
    mail = written(shell, "one.eml", EML)
    assert shell("rules", "test", mail, "--json") == 0
    [tried] = shell.json()
    assert (tried["matched"], tried["action"]) == ("invoices", "apply_label Invoices")
    assert {each["rule"]: each["result"] for each in tried["rules"]} == {
        "news": "does not match",
        "invoices": "decides",
        "shop": "is for other mail",
    }
    assert shell("rules", "test", mail) == 0
    assert shell.out.splitlines()[0].endswith("one.eml: invoices → apply_label Invoices")
    assert "no value of it matches" in shell.out


def test_rules_of_a_file_are_tried_on_many_messages_without_being_kept(shell: Shell) -> None:
    assert shell("migrate") == 0
    mbox = b"".join(b"From x\n" + EML.replace(b"42", b"%d" % number) + b"\n" for number in range(3))
    rules = written(shell, "rules.yaml", "name: second\nif: {subject_contains: 'invoice 1'}\nthen: star\n")
    assert shell("rules", "test", written(shell, "mail.mbox", mbox), "--rules", rules, "--json") == 0
    assert [row["matched"] for row in shell.json()] == [None, "second", None]
    assert rules_of(shell) == []
    assert shell("rules", "test") == 2


def test_mail_in_a_file_is_as_old_as_its_date_says(shell: Shell) -> None:
    assert shell("migrate") == 0
    rules = written(shell, "rules.yaml", "name: old\nif: {older_than: 7d}\nthen: archive\n")
    for date, matched in (
        ("Fri (a comment), 21 Nov 97 09 : 55 : 06 EST", "old"),
        ("1 Jan 102 09:55:06 +02:00", "old"),
        ("Fri, 1 Jan 2100 00:00:00 +0000", None),
        ("the other day", None),
        ("Thu, 1 Jan 1970 00:00:00 +0000", None),
    ):
        mail = written(shell, "dated.eml", f"From: a@b.example\r\nDate: {date}\r\n\r\nhello\r\n".encode())
        assert shell("rules", "test", mail, "--rules", rules, "--json") == 0
        assert [row["matched"] for row in shell.json()] == [matched], date


def test_rules_on_what_is_known_of_senders_are_tried_on_files(shell: Shell) -> None:
    assert shell("migrate") == 0
    with_labels(shell)
    assert shell("contacts", "import", written(shell, "book.csv", "name,email\nIda,ida@shop.example\n")) == 0
    rules = """
    rules:
      - {name: again, priority: 1, if: {sender_seen_before: true}, then: archive}
      - {name: known, priority: 2, if: {and: [{sender_in_contacts: true}, {to_me: true}]}, then: star}
      - {name: large, priority: 3, if: {larger: 1}, then: mark_read}
    """
    later = EML.replace(b"15 Nov", b"16 Nov").replace(b"Ida <ida@", b"ida <IDA@")
    other = EML.replace(b"Ida <ida@", b"Uta <uta@")
    mail = written(shell, "mail.mbox", b"".join(b"From x\n" + each + b"\n" for each in (later, EML, other)))
    asked = ("rules", "test", mail, "--rules", written(shell, "rules.yaml", rules), "--json")
    assert shell(*asked, "--account", "mara@lindqvist.example") == 0
    assert [row["matched"] for row in shell.json()] == ["again", "known", "large"]
    assert shell(*asked) == 0  # without an account, nobody is `me`
    assert [row["matched"] for row in shell.json()] == ["again", "large", "large"]


def test_rules_are_tried_on_a_message_that_is_here(shell: Shell) -> None:
    assert shell("migrate") == 0

    async def fill() -> str:
        database = SqliteDatabase(shell.folder / "postroom-data" / "postroom.sqlite3")
        setup, id = JobSetup(database, ManualClock()), new_id()
        account = await database.run(keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", setup.clock()))
        leased = await leased_mail(setup)
        job = setup.new(key="classify")
        content = read_mail(leased.envelope)
        await database.run(
            storing.store_message(leased, account, (new_id(), id), content, lambda _: job, setup.clock())
        )
        await database.close()
        return str(id)

    message = asyncio.run(fill())
    rules = written(shell, "rules.yaml", "name: inbox\nif: {label_present: INBOX}\nthen: star\n")
    assert shell("rules", "test", "--message", message, "--rules", rules, "--json") == 0
    [tried] = shell.json()
    assert (tried["message"], tried["matched"]) == (message, "inbox")
    assert shell("rules", "test", "--message", "nonsense") == 1
    assert shell("rules", "test", "--message", str(new_id())) == 1


def test_gmail_filters_come_in_and_what_could_not_be_translated_is_listed(shell: Shell) -> None:
    file = written(shell, "mailFilters.xml", FILTERS)
    assert shell("rules", "import", file, "--dry-run", "--json") == 0
    assert [row["result"] for row in shell.json() if "name" in row] == ["would come in"] * 2
    assert rules_of(shell) == []
    assert shell("rules", "import", file) == 0
    lines = shell.out.splitlines()
    first, third = (next(line for line in lines if line.startswith(f"filter {number} ")) for number in (1, 3))
    assert "  apply_label Shops, archive  " in first
    assert "  came over" in first
    assert "  refused " in third
    assert "has:drive has no counterpart among conditions" in third
    assert "2 came over, 1 refused" in lines
    assert "They are off." in lines[-1]
    shops, boss = rules_of(shell)
    assert (shops["conditions"], shops["action"]) == ({"from": "ida@shop.example"}, "several")
    assert [each["action"] for each in shops["parameters"]["actions"]] == ["apply_label", "archive"]
    assert boss["action"] == "forward"
    assert {rule["disabled_reason"] for rule in (shops, boss)} == {"imported; review and enable"}
    assert shops["origin"] == "import"
    assert shell("rules", "import", file, "--json") == 0
    assert {row["result"] for row in shell.json() if "name" in row} == {"left as it is"}


def test_a_sieve_script_comes_in_with_lines_for_what_did_not(shell: Shell) -> None:
    head = 'require ["fileinto", "copy"]; '
    script = head + 'if header :contains "subject" "chess" {\n  fileinto :copy "Club";\n  stop;\n}\nvacation "away";\n'
    assert shell("rules", "import", written(shell, "my.sieve", script), "--json") == 0
    [rule, left_out] = shell.json()
    assert (rule["result"], rule["enabled"], rule["verdict"]) == ("added", False, "came over")
    assert (left_out["where"], left_out["left_out"]) == ("line 5", "vacation")


def test_enabled_at_once_what_sends_mail_still_waits_for_a_review(shell: Shell) -> None:
    assert shell("rules", "import", written(shell, "mailFilters.xml", FILTERS), "--enable") == 0
    shops, boss = rules_of(shell)
    assert (shops["enabled"], boss["enabled"]) == (True, False)
    assert boss["disabled_reason"] == "it cannot be undone; review and enable"


def test_a_rule_that_an_existing_rule_keeps_from_its_mail_is_told(shell: Shell) -> None:
    assert shell("rules", "add", "--name", "all", "--if", '{"from": "@shop.example"}', "--then", "star") == 0
    assert shell("rules", "import", written(shell, "mailFilters.xml", FILTERS), "--dry-run", "--json") == 0
    verdicts = {row["where"]: row["verdict"] for row in shell.json()}
    assert verdicts == {"filter 1": "can never fire", "filter 2": "came over", "filter 3": "refused"}


@pytest.mark.parametrize(("answers", "enabled"), [("y\ny\n", True), ("y\nn\n", False), ("n\n", False)])
def test_on_a_terminal_a_simulation_is_offered_and_a_yes_after_it_enables_the_rules(
    shell: Shell, tmp_path: Path, answers: str, enabled: bool
) -> None:
    file = written(shell, "mailFilters.xml", FILTERS)
    data = ("--data-dir", str(tmp_path / "data"))
    shown = on_a_terminal(tmp_path, ("rules", "import", file, *data), answers)
    assert "2 came over, 1 refused" in shown
    assert ("messages replayed" in shown) is answers.startswith("y")
    shops, boss = rules_of(shell, *data)
    assert (shops["enabled"], boss["enabled"]) == (enabled, False)


def on_a_terminal(folder: Path, arguments: Sequence[str], answers: str) -> str:
    """Run a command whose input and output are a terminal, and return what it printed."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*POSTROOM, *arguments], cwd=folder, env=environment(folder, None), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the command ends
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


def test_rules_that_look_at_labels_nobody_has_are_imported_disabled(shell: Shell) -> None:
    assert shell("migrate") == 0
    with_labels(shell, "Receipts")
    file = written(shell, "rules.yaml", "name: look\nif: {label_present: Nowhere}\nthen: archive\n")
    assert shell("rules", "import", file) == 0
    assert "no mailbox has the label 'Nowhere'" in rules_of(shell)[0]["disabled_reason"]


def test_rules_that_cannot_be_taken_back_are_imported_disabled_and_added_as_they_are(shell: Shell) -> None:
    file = written(shell, "rules.yaml", "name: gone\nif: {sender_domain: spam.example}\nthen: delete\n")
    assert shell("rules", "import", file) == 0
    assert rules_of(shell)[0]["disabled_reason"] == "review and enable"
    assert shell("rules", "remove", "gone") == 0
    assert shell("rules", "add", file) == 0
    assert rules_of(shell)[0]["enabled"] is True


def test_what_is_exported_comes_in_elsewhere_as_the_same_rules(shell: Shell, tmp_path: Path) -> None:
    assert shell("rules", "add", written(shell, "rules.yaml", YAML)) == 0
    for format in ("yaml", "json"):
        file = shell.folder / f"out.{format}"
        assert shell("rules", "export", "--format", format, "--output", str(file)) == 0
        elsewhere = ("--data-dir", str(tmp_path / f"{format}-data"))
        assert shell("rules", "import", str(file), *elsewhere) == 0
        assert shell("rules", "export", "--json", *elsewhere) == 0
        theirs = json.loads(shell.out)["rules"]
        assert shell("rules", "export", "--json") == 0
        ours = json.loads(shell.out)["rules"]
        assert theirs == ours


@pytest.mark.parametrize(
    ("file", "condition"),
    [("out.xml", {"from_words": "ida"}), ("out.sieve", {"header_match": {"name": "subject", "pattern": "a b"}})],
)
def test_rules_exported_for_others_come_in_elsewhere_and_do_the_same(
    shell: Shell, tmp_path: Path, file: str, condition: dict[str, object]
) -> None:
    rules = {
        "rules": [
            {"name": "one", "if": condition, "actions": [{"apply_label": "Shop"}, "archive"], "continue": True},
            {"name": "two", "if": {"from": "@shop.example"}, "then": "star", "continue": True},
        ]
    }
    if file == "out.sieve":  # Sieve cannot star what is filed already
        rules["rules"].reverse()
    assert shell("rules", "add", written(shell, "rules.json", json.dumps(rules))) == 0
    out = str(shell.folder / file)
    format = "gmail" if file == "out.xml" else "sieve"
    assert shell("rules", "export", "--format", format, "--output", out) == 0
    elsewhere = ("--data-dir", str(tmp_path / "elsewhere"))
    assert shell("rules", "import", out, "--enable", *elsewhere) == 0
    theirs = rules_of(shell, *elsewhere)
    assert all(each["enabled"] for each in theirs)
    assert {str(each["conditions"]) for each in theirs} >= {str(condition)}


def test_an_export_tells_what_the_other_form_cannot_say(shell: Shell) -> None:
    assert shell("rules", "add", "--name", "old", "--if", '{"older_than": "12h"}', "--then", "archive") == 0
    for format in ("gmail", "sieve"):
        assert shell("rules", "export", "--format", format) == 0
        assert "old: archive" in shell.err
    assert shell("rules", "export", "--format", "toml") == 2


def test_hostile_files_are_refused_in_one_line(shell: Shell) -> None:
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>" + FILTERS
    cases = {
        "bomb.xml": bomb,
        "loop.yaml": "a: &a [*a]",
        "deep.yaml": "[" * 50_000,
        "bytes.yaml": b"\xff\xfe\x00",
        "torn.xml": "<feed",
        "open.sieve": 'if header :is "a" "b" {',
        "binary.sieve": b"\x80",
        "large.yaml": "# " + "x" * 1_100_000,
    }
    for name, content in cases.items():
        assert shell("rules", "import", written(shell, name, content)) == 2, name
        assert len(shell.err.splitlines()) == 1, name
    assert shell("rules", "import", "nowhere.yaml") == 2


def test_directions_are_added_changed_switched_and_removed(shell: Shell) -> None:
    assert shell("directions", "add", "Keep what my sister writes.", "--position", "5", "--json") == 0
    id = shell.json()[0]["id"]
    assert shell("directions", "edit", id[-6:], "--text", "Keep it all.", "--position", "1") == 0
    assert shell("directions", "disable", id) == 0
    assert shell("directions", "list", "--json") == 0
    [direction] = shell.json()
    assert (direction["content"], direction["position"], direction["enabled"]) == ("Keep it all.", 1, False)
    assert shell("directions", "enable", id) == 0
    assert shell("directions", "edit", id) == 2
    assert shell("directions", "edit", "ffff", "--position", "3") == 1
    assert shell("directions", "remove", id) == 0
    assert shell("directions", "list", "--json") == 0
    assert shell.out == ""
    assert [action for action, _ in audited(shell)] == [
        "directions.add",
        "directions.edit",
        "directions.edit",
        "directions.edit",
        "directions.remove",
    ]


def test_model_rules_are_added_changed_switched_and_removed(shell: Shell) -> None:
    assert shell("model-rules", "add", "school", "Star it.", "--scope", "domain", "--for", "School.example") == 0
    assert shell("model-rules", "edit", "school", "--text", "Star it, always.", "--rename", "schools") == 0
    assert shell("model-rules", "disable", "schools") == 0
    assert shell("model-rules", "list", "--json") == 0
    [rule] = shell.json()
    assert (rule["text"], rule["enabled"]) == ("Star it, always.", False)
    assert (rule["scope"], rule["scope_ref"]) == ("domain", "school.example")
    assert shell("model-rules", "edit", "schools", "--scope", "global") == 0
    assert shell("model-rules", "enable", rule["id"]) == 0
    assert shell("model-rules", "remove", "schools") == 0
    assert shell("model-rules", "remove", "schools") == 1
    assert "postroom model-rules list" in shell.err


@pytest.mark.parametrize("arguments", [("add", "school", "Star it."), ("edit", "school")])
def test_a_model_rule_has_no_shadow_and_it_is_told_what_has(shell: Shell, arguments: tuple[str, ...]) -> None:
    if arguments[0] == "edit":
        assert shell("model-rules", "add", "school", "Star it.", "--mode", "active") == 0
    assert shell("model-rules", *arguments, "--mode", "shadow") == 2
    assert "directions and model rules have no shadow; use `postroom shadow begin --model`" in shell.err
    assert shell("model-rules", arguments[0], "--help") == 0
    assert "--mode" not in shell.out


def test_the_labels_of_a_mailbox_are_looked_at_on_request_once(shell: Shell) -> None:
    assert shell("migrate") == 0
    assert shell("labels", "sync") == 1
    assert "postroom account list" in shell.err
    with_labels(shell, "Receipts")
    assert shell("labels", "sync", "--json") == 0
    [asked] = shell.json()
    assert asked["account"] == "mara@lindqvist.example"
    assert shell("labels", "sync", "--account", "mara@lindqvist.example", "--json") == 0
    assert shell.json() == [asked], "one that is still to come is enough"
    assert shell("jobs", "list", "--json") == 0
    assert [each["type"] for each in shell.json()] == ["labels.sync.gmail"]


def test_labels_are_listed_described_and_kept_from_the_classifier(shell: Shell) -> None:
    assert shell("migrate") == 0
    with_labels(shell, "Receipts", "Travel")
    assert shell("labels", "describe", "receipts", "what I paid for") == 0
    assert shell("labels", "deny", "Label_0", "--account", "mara@lindqvist.example", "--json") == 0
    [changed] = shell.json()
    assert (changed["description"], changed["available_to_classifier"]) == ("what I paid for", False)
    assert shell("labels", "list", "--json") == 0
    assert [row["available_to_classifier"] for row in shell.json()] == [False, True]
    assert shell("labels", "allow", "Receipts") == 0
    assert shell("labels", "deny", "Nowhere") == 1
    assert "postroom labels list" in shell.err


def test_the_list_says_in_words_what_each_rule_does(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, more in (("Tickets", ["--needs-approval"]), ("Later", ["--shadow"]), ("Never", [])):
        options = ["--if", '{"subject_contains": "Ticket"}', "--then", "archive", "--priority", "10", *more]
        assert shell("rules", "add", "--name", name, *options) == 0
    assert shell("rules", "disable", "Never") == 0
    monkeypatch.setenv("COLUMNS", "100")
    assert shell("rules", "list") == 0
    for line in (
        "  10  Tickets  (on, 0 hits in 7 days)",
        "      if the subject contains “Ticket”: archive it; asks you each time",
        "  10  Later  (in shadow, 0 hits in 7 days)",
        "  10  Never  (off)",
    ):
        assert line in shell.out.splitlines()
    monkeypatch.setenv("COLUMNS", "40")
    assert shell("rules", "list") == 0
    assert max(map(len, shell.out.splitlines())) <= 40
