"""`postroom contacts` and `postroom filters`: import contacts, add and remove rules, each change audited."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from postroom.settings.reading import load_settings
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from support.shell import Shell

VCARD = """BEGIN:VCARD
VERSION:3.0
FN:Mara Lindqvist
EMAIL;TYPE=work:Mara@Lindqvist.example
END:VCARD
BEGIN:VCARD
FN:Ivo
EMAIL:ivo at home
EMAIL:ivo@x.example
END:VCARD
"""
CSV = "Name,E-mail 1 - Value\nMara L.,mara@lindqvist.example\nUta,uta@x.example\n"


@pytest.fixture
def book(shell: Shell) -> Path:
    file = shell.folder / "contacts.vcf"
    file.write_text(VCARD)
    return file


def audited(shell: Shell) -> list[dict[str, Any]]:
    assert shell("audit", "list", "--json") == 0
    return list(reversed(shell.json()))


def test_an_address_book_is_ingested_and_listed(shell: Shell, book: Path):
    assert shell("contacts", "import", str(book)) == 0
    assert shell.out == "2 added, 0 updated, 0 unchanged\n"
    assert "skipped: line 8: 'ivo at home' is not an address" in shell.err
    assert shell("contacts", "list", "--json") == 0
    found = [(each["address"], each["name"], each["source"], each["mailbox"]) for each in shell.json()]
    assert found == [("ivo@x.example", "Ivo", "vcard", ""), ("mara@lindqvist.example", "Mara Lindqvist", "vcard", "")]
    assert shell("contacts", "list") == 0
    head, first, _ = shell.out.splitlines()
    assert head.split()[:4] == ["ADDRESS", "NAME", "SOURCE", "MAILBOX"]
    assert first.split()[:4] == ["ivo@x.example", "Ivo", "vcard", "-"]


def test_another_book_adds_and_updates_and_says_so_to_programs(shell: Shell, book: Path):
    assert shell("contacts", "import", str(book)) == 0
    other = shell.folder / "more.csv"
    other.write_text(CSV)
    assert shell("contacts", "import", str(other), "--json") == 0
    assert shell.json() == [{"added": 1, "updated": 1, "unchanged": 0, "problems": []}]
    assert shell("contacts", "import", str(other), "--json") == 0
    assert shell.json() == [{"added": 0, "updated": 0, "unchanged": 2, "problems": []}]
    entries = audited(shell)
    assert [each["after"]["source"] for each in entries] == ["vcard", "csv", "csv"]
    assert all(each["actor"].startswith("cli:") for each in entries)


def test_contacts_of_one_account_are_kept_for_it_alone(shell: Shell, book: Path):
    assert shell("migrate") == 0
    connect(shell, "ada@example.com")
    assert shell("contacts", "import", str(book), "--account", "Ada@Example.com") == 0, shell.err
    assert shell("contacts", "list", "--json") == 0
    assert {each["mailbox"] for each in shell.json()} == {"gmail:user:ada@example.com"}
    assert shell("contacts", "import", str(book), "--account", "ben@example.com") == 2
    assert "there is no account ben@example.com" in shell.err


def connect(shell: Shell, email: str) -> None:
    async def connected() -> None:
        async with shell.application.open_database(load_settings({"data_dir": None})) as database:
            await database.run(keep_account(new_id(), "gmail", f"gmail:user:{email}", email, datetime.now(UTC)))

    asyncio.run(connected())


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.vcf", None, "cannot be read"),
        ("empty.csv", "", "it contains no address"),
        ("picture.jpg", "\x00\x01\x02", "it contains no address"),
    ],
)
def test_what_is_not_address_book_is_refused_in_one_line(shell: Shell, name: str, content: str | None, told: str):
    if content is not None:
        (shell.folder / name).write_text(content)
    assert shell("contacts", "import", name) == 2
    assert told in shell.err
    assert len(shell.err.splitlines()) == 1
    assert not (shell.folder / "postroom-data").exists()


def test_a_large_book_is_ingested_in_full(shell: Shell):
    book = shell.folder / "large.csv"
    book.write_text("email\n" + "".join(f"{number}@x.example\n" for number in range(12_345)))
    assert shell("contacts", "import", str(book), "--json") == 0
    assert shell.json()[0]["added"] == 12_345
    assert shell("contacts", "list", "--json") == 0
    assert len(shell.out.splitlines()) == 12_345
    assert len(audited(shell)) == 3


def rules(shell: Shell) -> dict[str, dict[str, Any]]:
    assert shell("filters", "list", "--json") == 0
    return {each["name"]: each for each in shell.json()}


@pytest.mark.parametrize(
    ("options", "kind", "header", "value"),
    [
        (("--sender-domain", "Shop.Example"), "sender_domain", None, "shop.example"),
        (("--sender-domain-suffix", "shop.example"), "sender_domain_suffix", None, "shop.example"),
        (("--sender", "Ida@Shop.Example"), "sender_address", None, "ida@shop.example"),
        (("--header", "X-Promo"), "header_present", "x-promo", None),
        (("--header", "X-Promo=Yes=No"), "header_equals", "x-promo", "yes=no"),
        (("--header", "X-Mailer~Bulk Sender"), "header_contains", "x-mailer", "bulk sender"),
        (("--mime-type", "Image/*"), "mime_type", None, "image/*"),
    ],
)
def test_a_rule_of_every_kind_is_added_and_listed(
    shell: Shell, options: tuple[str, str], kind: str, header: str | None, value: str | None
):
    assert shell("filters", "add", "--name", "shop", "--tier", "skip", "--position", "7", *options) == 0
    assert shell.out == "shop  added\n"
    rule = rules(shell)["shop"]
    assert (rule["kind"], rule["header"], rule["value"]) == (kind, header, value)
    assert (rule["position"], rule["tier"], rule["origin"], rule["enabled"]) == (7, "skip", "user", True)


def test_the_list_shows_the_order_in_which_rules_are_tried(shell: Shell):
    assert shell("filters", "add", "--name", "shop", "--tier", "skip", "--sender-domain", "shop.example") == 0
    assert shell("filters", "list") == 0
    head, first, *pack = shell.out.splitlines()
    assert head.split() == ["POSITION", "NAME", "TIER", "CONDITION", "ORIGIN", "ENABLED"]
    assert first.split() == ["100", "shop", "skip", "sender", "domain", "shop.example", "user", "yes"]
    assert all("pack" in line for line in pack)
    assert "header" not in first


def test_rules_are_removed_and_shipped_ones_switched_off_and_on_again(shell: Shell):
    assert shell("filters", "add", "--name", "shop", "--tier", "skip", "--sender-domain", "shop.example") == 0
    assert shell("filters", "remove", "shop", "--json") == 0
    assert shell.json() == [{"done": "Removed. Connectors apply it within 15 minutes."}]
    assert shell("filters", "remove", "list-id") == 0
    assert shell.out == "Disabled. Connectors apply it within 15 minutes.\n"
    found = rules(shell)
    assert "shop" not in found
    assert not found["list-id"]["enabled"]
    assert shell("filters", "add", "--name", "list-id") == 0
    assert shell.out == "list-id  switched on\n"
    assert shell("filters", "add", "--name", "list-id", "--json") == 0
    assert shell.json() == [{"name": "list-id", "result": "was on"}]
    assert [each["action"] for each in audited(shell)] == [
        "filters.add",
        "filters.remove",
        "filters.remove",
        "filters.restore",
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "a rule needs a condition"),
        (("--sender", "a@b.example", "--mime-type", "image/*"), "a rule has exactly one condition; 2 are given"),
        (("--sender", "nobody"), "--sender: 'nobody' is not an address"),
        (("--mime-type", "image"), "--mime-type: 'image' is not a MIME type"),
        (("--header", "=x"), "--header: is not one line of text"),
        (("--header", "X-A="), "--header: is not one line of text"),
        (("--sender", "a@b.example", "--position", "-1"), "--position: is -1"),
        (("--sender", "a@b.example", "--tier", "metdata"), "--tier: is 'metdata'; did you mean 'metadata'?"),
        (("--sender", "a@b.example", "--name", "list-id"), "'list-id' is the name of a shipped rule"),
    ],
)
def test_a_wrong_rule_is_refused_with_the_option_that_is_wrong(shell: Shell, options: tuple[str, ...], told: str):
    assert shell("filters", "add", "--name", "shop", "--tier", "skip", *options) == 2
    assert told in shell.err
    assert len(shell.err.splitlines()) == 1


def test_a_rule_that_is_not_there_cannot_be_removed(shell: Shell):
    assert shell("migrate") == 0
    assert shell("filters", "remove", "shop") == 1
    assert "see `postroom filters list`" in shell.err
