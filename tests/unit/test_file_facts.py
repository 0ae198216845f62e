"""Mail in files has the facts that mail of an account has, as far as the files tell them."""

from datetime import UTC, datetime

import pytest

from postroom.core.mail.mime import parse_message
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.file_facts import FileHistory, facts_from_file, read_history
from postroom.core.rules.needs import unknown_kinds

MINE = frozenset({"mara@lindqvist.example"})


def a_mail(number: int, sender: str, date: str, more: str = "") -> bytes:
    head = f"From: {sender}\nTo: mara@lindqvist.example\nDate: {date}\nMessage-ID: <{number}@x.example>\n{more}"
    return f"{head}Subject: Hello\n\nGood morning\n".encode()


MAIL = [
    a_mail(1, "Mara <Mara@Lindqvist.example>", "Sun, 01 Nov 2026 08:00:00 +0000"),
    a_mail(2, "ida@shop.example", "Tue, 03 Nov 2026 08:00:00 +0000", "In-Reply-To: <1@x.example>\n"),
    a_mail(3, "ida@shop.example", "Mon, 02 Nov 2026 08:00:00 +0000"),
    a_mail(4, "uta@shop.example", "nonsense", "In-Reply-To: <9@x.example>\n"),
]


def facts(number: int, history: FileHistory | None) -> MessageFacts:
    raw = MAIL[number - 1]
    return facts_from_file(parse_message(raw), len(raw), history)


def test_the_history_of_all_files_tells_about_senders_and_answers() -> None:
    history = read_history(MAIL, MINE, frozenset({"uta@shop.example"}))
    told = {
        number: (each.sender_seen_before, each.reply_to_mine, each.sender_in_contacts)
        for number in (2, 3, 4)
        for each in [facts(number, history)]
    }
    assert told == {2: (True, True, False), 3: (False, False, False), 4: (False, False, True)}
    assert unknown_kinds(facts(2, history)) == frozenset()


def test_what_a_file_alone_does_not_tell_is_not_known() -> None:
    alone = facts(2, None)
    assert (alone.size, alone.attachments, alone.sent_at) == (len(MAIL[1]), (), datetime(2026, 11, 3, 8, tzinfo=UTC))
    assert unknown_kinds(alone) == {
        *("from_me", "to_me", "cc_me", "bcc_me", "reply_to_mine"),
        *("sender_in_contacts", "sender_seen_before"),
    }


def test_without_own_addresses_nothing_is_an_answer_to_oneself() -> None:
    history = read_history(MAIL, frozenset(), None)
    assert {"from_me", "reply_to_mine", "sender_in_contacts"} <= unknown_kinds(facts(2, history))
    assert facts(2, history).sender_seen_before


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe\x00", b"From: x\n\n", b"Date: 99999999999999\n\n"])
def test_any_file_has_facts(raw: bytes) -> None:
    history = read_history([raw], MINE, None)
    assert facts_from_file(parse_message(raw), len(raw), history).sent_at is None
