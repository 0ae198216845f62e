"""`postroom preview`: what Postroom would do with mail in files, changing nothing."""

import random
from functools import partial
from pathlib import Path

import pytest

from postroom.core.mail.files import MailFile
from postroom.core.mail.tiers import Known
from postroom.manage.preview import Previewed, preview_message
from support.mutations import mutated
from support.processor_time import MILLION, within_turns
from support.scale import scale
from support.shell import Shell

KEYS = ["path", "policy_tier", "assignment_rule", "ingestion_tier", "categories", "problem"]
MAIL = {
    "1-contact": "From: Ida <ida@x.example>\nTo: list@y.example\nSubject: dinner",
    "2-reply": "From: jo@y.example\nIn-Reply-To: <mine@x>\nSubject: Re: hello",
    "3-direct": "From: jo@y.example\nTo: Mara <MARA@x.example>\nSubject: Your invoice",
    "4-bulk": "From: shop@z.example\nTo: mara@x.example\nList-Unsubscribe: <x>\nSubject: Sale",
    "5-mine": "From: mara@x.example\nTo: jo@y.example\nMessage-ID: <mine@x>\nSubject: hello",
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
    assert all(list(line) == KEYS for line in lines)
    assert [tuple(line.values())[1:] for line in lines] == [
        ("high_priority", "known_contact", "full", ["relationship"], None),
        ("high_priority", "reply_to_outbound", "full", ["relationship"], None),
        ("interactive", "direct_correspondence", "full", ["finance", "relationship"], None),
        ("default", "fallback_default", "metadata", ["newsletters"], None),
        ("default", "fallback_default", "full", [], None),
        ("default", "fallback_default", "full", [], "there is no header"),
    ]
    assert [line["path"] for line in lines] == [str(mail / f"{name}.eml") for name in MAIL]


def test_the_table_ends_with_a_summary(shell: Shell, mail: Path) -> None:
    assert shell("preview", str(mail), "--user", "mara@x.example", "--contacts", "contacts.vcf") == 0
    assert shell.out.splitlines()[1].split()[:4] == ["high_priority", "known_contact", "full", "relationship"]
    assert shell.out.splitlines()[-6:] == [
        "6 messages, 1 with a problem",
        "filters   the default ones",
        "tier      default 3 (50%), high_priority 2 (33%), interactive 1 (17%)",
        "rule      fallback_default 3 (50%), known_contact 1 (17%), reply_to_outbound 1 (17%), "
        "direct_correspondence 1 (17%)",
        "taken in  full 5 (83%), metadata 1 (17%)",
        "category  relationship 3 (50%), finance 1 (17%), newsletters 1 (17%)",
    ]


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
    assert "taken in  full 5 (83%), skip 1 (17%)" in shell.out


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


def test_an_empty_folder_is_no_error(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert shell("preview", "none", "--user", "mara@x.example") == 0
    assert "0 messages, 0 with a problem" in shell.out


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
        ((".",), "--user"),
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
    for number in range(scale(400, 10_000)):
        raw = mutated(rng, whole)
        seen = within_turns(40 * MILLION, partial(preview_message, MailFile(str(number), raw), known))
        assert isinstance(seen, Previewed)
        assert "cannot be read" not in (seen.problem or "")


BODIES = (
    "\nHello\n",
    "Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n<p>caf=E9</p>\n",
    'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nhi\n'
    "--c\nContent-Type: text/html\n\n<b>html</b>\n--c--\n--b\nContent-Type: image/png; name*=utf-8''%C3%A9.png\n"
    "Content-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n",
)
