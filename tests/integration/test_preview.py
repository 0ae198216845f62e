"""`postroom preview`: what Postroom would do with mail in files, changing nothing."""

import os
import random
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.mail.files import MailFile
from postroom.core.mail.tiers import Known
from postroom.core.rules.starter import drafts_of, starters
from postroom.operations.preview.arrivals import IncomingMessage, Recipient
from postroom.operations.preview.preview import Previewer, PreviewRules
from postroom.operations.preview.preview_rules import rules_of
from support.mutations import mutated
from support.processor_time import MILLION, within_turns
from support.scale import scale
from support.shell import Shell

KEYS = [
    *("path", "sender", "sender_name", "subject", "sent_at", "policy_tier", "assignment_rule", "ingestion_tier"),
    *("categories", "rules", "action", "result", "why", "leaves_inbox", "doubts", "doubt", "tokens", "problem"),
]
TIERS = ("policy_tier", "assignment_rule", "ingestion_tier", "categories", "problem")
MAIL = {
    "1-contact": "From: Ida <ida@x.example>\nTo: list@y.example\nSubject: dinner",
    "2-reply": "From: jo@y.example\nIn-Reply-To: <mine@x>\nSubject: Re: hello",
    "3-direct": "From: jo@y.example\nTo: Mara <MARA@x.example>\nSubject: Your invoice",
    "4-bulk": "From: shop@z.example\nTo: mara@x.example\nList-Unsubscribe: <x>\nSubject: Sale",
    "5-mine": "From: mara@x.example\nTo: al@q.example\nMessage-ID: <mine@x>\nSubject: hello",
    "6-broken": "no header at all",
}
CARD = "BEGIN:VCARD\nFN:Ida\nEMAIL:ida@x.example\nEND:VCARD\n"


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    folder = tmp_path / "mail"
    folder.mkdir()
    for name, head in MAIL.items():
        (folder / f"{name}.eml").write_text(f"{head}\n\nHello\n")
    (tmp_path / "contacts.vcf").write_text(CARD)
    return folder


def test_every_message_is_shown_with_exactly_the_promised_keys(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--contacts", "contacts.vcf", "--json") == 0
    lines = shell.json()
    assert all(sorted(line) == sorted(KEYS) for line in lines)
    assert [tuple(line[key] for key in TIERS) for line in lines] == [
        ("high_priority", "known_contact", "full", ["relationship"], None),
        ("high_priority", "reply_to_outbound", "full", ["relationship"], None),
        ("interactive", "direct_correspondence", "full", ["finance", "relationship"], None),
        ("default", "fallback_default", "metadata", ["newsletters"], None),
        ("default", "fallback_default", "full", [], None),
        ("default", "fallback_default", "full", [], "there is no header"),
    ]
    assert [line["path"] for line in lines] == [str(mail / f"{name}.eml") for name in MAIL]


def test_the_summary_comes_first_and_then_each_message(shell: Shell, mail: Path) -> None:
    arguments = ("--user", "mara@x.example", "--contacts", "contacts.vcf", "--starter", "all")
    assert shell("preview", str(mail), *arguments) == 0
    lines = shell.out.splitlines()
    assert lines[0] == "Of 6 messages: 1 would leave the inbox, 0 would need your approval, 2 you would see first."
    assert lines[1] == "The others: 2 labelled or the like, 2 left as they are, 1 your own."
    assert lines[3:10] == [
        "rules     starter rules: all, 12 rules",
        "filters   the default ones",
        "you       mara@x.example",
        "tier      default 3 (50%), high_priority 2 (33%), interactive 1 (17%)",
        "why       everything else 3 (50%), from a contact 1 (17%), reply to your mail 1 (17%), written to you 1 (17%)",
        "stored    full 5 (83%), metadata 1 (17%)",
        "category  relationship 3 (50%), finance 1 (17%), newsletters 1 (17%)",
    ]
    [shop] = [line for line in lines if line.endswith("Sale")]
    assert shop.split("  ")[0] == "apply_label Newsletters, archive"
    assert "shop@z.example" in shop
    [own] = [line for line in lines if line.endswith("hello") and "Re:" not in line]
    assert own.startswith("your own mail")


def test_the_summary_alone_is_one_object_for_programs(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--starter", "all", "--summary", "--json") == 0
    [summary] = shell.json()
    assert (summary["messages"], summary["leave_inbox"], summary["own"]) == (6, 1, 1)
    assert [each["name"] for each in summary["by_rule"]] == ["Answers to your mail", "Newsletters"]
    assert [(each["name"], each["leave"]) for each in summary["by_sender"]] == [
        ("jo@y.example", 0),
        ("shop@z.example", 1),
    ]
    assert summary["model"]["messages"] == 3


RULES = """
rules:
  - {name: shop, if: {sender_domain: z.example}, actions: [apply_label Shop, archive]}
  - {name: forward, if: {subject_contains: invoice}, then: forward, parameters: {to: bank@b.example}}
  - {name: off, if: {subject_contains: dinner}, then: trash, enabled: false}
"""


def test_the_rules_of_a_file_are_applied_under_the_safety_policy(shell: Shell, mail: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    assert shell("preview", str(mail), "--user", "mara@x.example", "--rules", "rules.yaml", "--json") == 0
    found = {line["subject"]: (line["action"], line["result"], line["leaves_inbox"]) for line in shell.json()}
    assert found["Sale"] == ("apply_label Shop, archive", "done", True)
    assert found["Your invoice"] == ("forward to bank@b.example", "waits", False)
    assert found["dinner"] == ("none", "stays", False)
    assert shell("migrate") == 0
    assert shell("protect", "add", "sender", "shop@z.example") == 0
    assert shell("preview", str(mail), "--user", "mara@x.example", "--rules", "rules.yaml", "--json") == 0
    assert [line["result"] for line in shell.json() if line["subject"] == "Sale"] == ["refused"]


def test_without_a_choice_the_rules_in_use_are_applied_and_starter_rules_where_there_are_none(
    shell: Shell, mail: Path, tmp_path: Path
) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--summary") == 0
    assert "rules     all starter rules, since you have no rules yet; nothing is switched on" in shell.out
    (tmp_path / "rules.yaml").write_text(RULES)
    assert shell("rules", "add", "rules.yaml") == 0
    assert shell("preview", str(mail), "--user", "mara@x.example") == 0
    assert "rules     your rules, 2 rules" in shell.out
    assert "apply_label Shop, archive" in shell.out


def test_whoever_gives_no_address_is_the_one_whom_most_mail_is_for(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--json") == 0
    assert "you are taken for mara@x.example, whom 2 of 6 messages are for" in shell.err
    assert [line["policy_tier"] for line in shell.json()].count("interactive") == 1


def test_a_wrong_address_is_told_with_those_that_the_mail_is_for(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--user", "marra@x.example") == 0
    assert "no message is for or from marra@x.example; most are for mara@x.example (2)" in shell.err


def test_the_page_is_written_for_its_owner_alone(shell: Shell, mail: Path, tmp_path: Path) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--html", "page.html", "--summary") == 0
    assert "The page is in page.html." in shell.out
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    assert "Of 6 messages: 1 would leave the inbox" in (tmp_path / "page.html").read_text()
    assert shell("preview", str(mail), "--user", "mara@x.example", "--html", "missing/page.html") == 2
    assert "--html: 'missing/page.html' cannot be written" in shell.err


def test_a_page_replaces_an_earlier_page_and_nothing_else(shell: Shell, mail: Path, tmp_path: Path) -> None:
    box, page = tmp_path / "all.mbox", tmp_path / "page.html"
    box.write_text("From a@b Mon\nSubject: kept\nTo: mara@x.example\n\nHello\n")
    assert shell("preview", str(box), "--html", str(box), "--summary") == 2
    assert "exists and is no page of a preview; give another path" in shell.err
    assert "Subject: kept" in box.read_text()
    os.mkfifo(tmp_path / "pipe")
    assert shell("preview", str(box), "--html", "pipe", "--summary") == 2
    for path in (mail, box):
        assert shell("preview", str(path), "--html", "page.html", "--summary") == 0
        page.chmod(0o644 if path == mail else page.stat().st_mode)
    assert page.stat().st_mode & 0o777 == 0o600
    assert "Of 1 message:" in page.read_text()


FILE_OF_FILTERS = [
    '{"position": 10, "name": "shop", "tier": "skip", "condition": "…", "kind": "sender_domain", "header": null, '
    '"value": "z.example", "origin": "user", "enabled": true}\n'
    '{"position": 5, "name": "off", "tier": "skip", "kind": "sender_domain", "value": "x.example", "enabled": false}\n',
    '[{"number": 10, "name": "shop", "tier": "skip", "kind": "sender_domain", "value": "Z.Example"}]',
    "- name: shop\n  position: 10\n  tier: skip\n  kind: sender_domain\n  value: z.example\n",
    '\ufeff[\n  {"position": 10, "name": "s", "tier": "skip", "kind": "header_present", "header": "List-Unsubscribe"}]',
]


@pytest.mark.parametrize("content", FILE_OF_FILTERS, ids=["as listed", "JSON", "YAML", "JSON over lines"])
def test_the_filters_of_a_file_decide_how_much_is_ingested(
    shell: Shell, mail: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "filters").write_text(content, encoding="utf-8")
    assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", "filters") == 0
    assert "filters   filters, 1 rule\n" in shell.out
    assert "stored    full 5 (83%), skip 1 (17%)" in shell.out


def test_ones_own_filters_are_read_from_the_data_folder_and_what_is_listed_can_be_previewed(
    shell: Shell, mail: Path, tmp_path: Path
) -> None:
    adding = ("filters", "add", "--name", "shop", "--tier", "skip", "--sender-domain", "z.example")
    assert shell(*adding) == 0
    assert shell("filters", "remove", "list-id") == 0
    assert shell("filters", "list", "--json") == 0
    (tmp_path / "kept.jsonl").write_text(shell.out)
    for source, told in (("own", "your own, 7 rules"), ("kept.jsonl", "kept.jsonl, 7 rules")):
        assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", source) == 0
        assert f"filters   {told}" in shell.out
        assert "skip 1" in shell.out
    assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", "default") == 0
    assert "metadata 1" in shell.out


def test_filters_that_nobody_has_changed_are_called_the_default_ones(shell: Shell, mail: Path) -> None:
    assert shell("migrate") == 0
    assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", "own") == 0
    assert "filters   the default ones\n" in shell.out


def test_without_a_database_there_are_no_filters_of_ones_own_and_none_is_made(
    shell: Shell, mail: Path, tmp_path: Path
) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", "own") == 2
    assert "postroom: --filters: there is no database in" in shell.err
    assert not (tmp_path / "postroom-data").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"position": 1, "name": "a", "tier": "skp", "kind": "sender_domain", "value": "x.example"}', "did you mean"),
        ('{"name": "a", "tier": "skip", "kind": "sender_domain", "value": "x.example"}', "entry 1: number is None"),
        ("[1]", "entry 1 is not an object"),
        ("tier: [", "neither JSON nor YAML"),
        ("\x00", "neither JSON nor YAML"),
        ("? [a, [b]]\n: 1", "neither JSON nor YAML (line 1 has a list or a mapping as a key)"),
        ("a: &x [*x]", "neither JSON nor YAML (line 1 uses an anchor or alias)"),
        ("- !!python/object/apply:os.system [true]", "neither JSON nor YAML"),
    ],
)
def test_a_file_of_filters_that_is_invalid_is_refused_with_the_place(
    shell: Shell, mail: Path, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "bad").write_text(content)
    assert shell("preview", str(mail), "--user", "mara@x.example", "--filters", "bad") == 2
    assert "postroom: --filters: " in shell.err
    assert says in shell.err
    assert shell.out == ""


def test_nothing_is_touched(shell: Shell, mail: Path, tmp_path: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in tmp_path.rglob("*")}
    assert shell("preview", str(mail), "--user", "mara@x.example") == 0
    assert {
        path: (path.stat().st_mtime_ns, path.is_dir() or path.read_bytes()) for path in tmp_path.rglob("*")
    } == before


def test_an_mbox_and_a_csv_do_as_well(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "all.mbox").write_text("".join(f"From x\n{head}\n\nHello\n\n" for head in MAIL.values()))
    (tmp_path / "contacts.csv").write_text("Name,E-mail 1 - Value\nIda,ida@x.example\n")
    assert shell("preview", "all.mbox", "--user", "mara@x.example", "--contacts", "contacts.csv", "--json") == 0
    assert [line["assignment_rule"] for line in shell.json()][:2] == ["known_contact", "reply_to_outbound"]
    assert shell.json()[0]["path"] == "all.mbox#1"


def test_several_addresses_of_the_user_count(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--user", "old@x.example", "--user", "mara@x.example", "--json") == 0
    assert [line["policy_tier"] for line in shell.json()].count("interactive") == 1


def test_a_reply_to_mail_of_someone_else_is_no_reply_to_the_user(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "1.eml").write_text("From: jo@y.example\nMessage-ID: <theirs@x>\n\nHello\n")
    (tmp_path / "2.eml").write_text("From: al@y.example\nIn-Reply-To: <theirs@x>\n\nHello\n")
    assert shell("preview", str(tmp_path), "--user", "mara@x.example", "--json") == 0
    assert [line["assignment_rule"] for line in shell.json()] == ["fallback_default", "fallback_default"]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "postroom: PATH: 'given' has no message; give an mbox"),
        ({"a.bin": b"\x00\x01\x02"}, "postroom: PATH: 'given' is no mail: it has no header"),
        ({"a.png": b"\x89PNG\r\n\x1a\n", "b.txt": b"hello"}, "'given' has no mail: none of 2 has a header"),
    ],
)
def test_a_folder_without_mail_is_told(shell: Shell, tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    (tmp_path / "given").mkdir()
    for name, content in files.items():
        (tmp_path / "given" / name).write_bytes(content)
    assert shell("preview", "given", "--user", "mara@x.example") == 2
    assert says in shell.err
    assert shell.out == ""


def test_a_message_cannot_move_the_cursor(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J.eml").write_text("From: x@y.example\n\nHello")
    assert shell("preview", str(tmp_path), "--user", "mara@x.example") == 0
    assert "\x1b" not in shell.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing", "--user", "mara@x.example"), "postroom: PATH: 'missing' does not exist"),
        ((".", "--user", "mara"), "postroom: --user: 'mara' is not an address"),
        (
            (".", "--user", "a@x.example", "--contacts", "missing.vcf"),
            "postroom: --contacts: 'missing.vcf' cannot be read",
        ),
        ((".", "--user", "a@x.example", "--filters", "missing"), "postroom: --filters: 'missing' cannot be read"),
        ((".", "--starter", "newsleters"), "did you mean 'newsletters'"),
        ((".", "--starter", "all", "--rules", "x.yaml"), "postroom: --starter: is given beside --rules"),
        ((".", "--rules", "missing.yaml"), "'missing.yaml' cannot be read"),
        ((), "PATH"),
    ],
)
def test_what_is_wrongly_used_is_reported(shell: Shell, arguments: tuple[str, ...], says: str) -> None:
    assert shell("preview", *arguments) == 2
    assert says in shell.err
    assert shell.out == ""


def test_broken_contacts_are_reported_and_the_rest_counts(shell: Shell, mail: Path, tmp_path: Path) -> None:
    (tmp_path / "contacts.csv").write_text("Email\nnowhere\nida@x.example\n")
    assert shell("preview", str(mail), "--user", "mara@x.example", "--contacts", "contacts.csv", "--json") == 0
    assert "line 2: 'nowhere' is not an address" in shell.err
    assert shell.json()[0]["assignment_rule"] == "known_contact"


def test_every_broken_message_is_accounted_for_at_little_cost() -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    rng = random.Random(seed)
    known = Known.of({"mara@x.example"}, {"ida@x.example"}, {"<mine@x>"})
    whole = [f"{head}\nMIME-Version: 1.0\n{body}".encode() for head in MAIL.values() for body in BODIES]
    chosen, now = PreviewRules(rules_of(drafts_of(starters())), Policy()), datetime(2026, 11, 17, tzinfo=UTC)
    previewer = Previewer(chosen, Recipient("mara@x.example", known), now)
    for number in range(scale(400, 10_000)):
        mail = MailFile(str(number), mutated(rng, whole))
        within_turns(40 * MILLION, partial(previewer.add, IncomingMessage(mail)))
        seen = previewer.rows[number]
        assert "cannot be read" not in (seen.problem or "")


BODIES = (
    "\nHello\n",
    "Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n<p>caf=E9</p>\n",
    'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nhi\n'
    "--c\nContent-Type: text/html\n\n<b>html</b>\n--c--\n--b\nContent-Type: image/png; name*=utf-8''%C3%A9.png\n"
    "Content-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n",
)
