"""The id of a message: the same wherever it is, another for another message, and found again by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mailboxes.imap.answers import Fetched
from postroom.mailboxes.imap.identity import (
    FIELDS,
    MessageId,
    Scheme,
    id_of,
    items_for,
    needs_text,
    read_id,
    scheme_of,
    with_own_text,
)
from postroom.mailboxes.imap.responses import Value

HEAD = (
    b"Received: from a by b; Tue, 17 Nov 2026 09:30:01 +0000\r\nMessage-ID: <one@x.example>\r\n"
    b"From: Ada <ada@x.example>\r\nSubject: a subject\r\n\r\n"
)


def fetched(
    head: bytes, uid: int = 7, date: bytes = b"17-Nov-2026 09:30:00 +0000", text: bytes | None = b"Hello"
) -> Fetched:
    items: dict[str, Value] = {"UID": str(uid), "INTERNALDATE": date, f"BODY[HEADER.FIELDS ({FIELDS})]": head}
    return Fetched(uid, items if text is None else items | {"BODY[TEXT]": text, "RFC822.SIZE": "100"})


def id_of_head(head: bytes, date: bytes = b"17-Nov-2026 09:30:00 +0000") -> str:
    found = id_of(fetched(head, date=date), "hash")
    assert found is not None
    return found


def test_a_copy_elsewhere_is_the_same_message() -> None:
    assert id_of(fetched(HEAD, 7), "hash") == id_of(fetched(HEAD, 99, b"18-Nov-2026 10:00:00 +0100"), "hash")


def test_the_text_tells_messages_apart_that_have_not_come_by_mail() -> None:
    """No server has marked them, so a program may have written many with the same header."""
    written = HEAD.partition(b"\r\n")[2]
    ids = {id_of(fetched(written, text=each), "hash") for each in (b"Hello", b"Howdy", b"")}
    assert len(ids) == 3
    assert id_of(fetched(written, 7), "hash") == id_of(fetched(written, 99), "hash")
    assert needs_text(fetched(written, text=None), "hash")
    assert id_of(fetched(written, text=None), "hash") is None
    # What has come by mail needs none.
    assert not needs_text(fetched(HEAD, text=None), "hash")
    assert id_of(fetched(HEAD, text=None), "hash") == id_of(fetched(HEAD, text=b"Howdy"), "hash")


def test_the_text_is_taken_from_a_message_that_was_read_whole() -> None:
    written = HEAD.partition(b"\r\n")[2]
    for text in (b"Hello\r\n\r\nAda", b"", b"long" * 2000):
        items = {**fetched(written, text=None).items, "BODY[]": written + text}
        whole = with_own_text(Fetched(7, items), "hash")
        assert id_of(whole, "hash") == id_of(fetched(written, text=text[:4096]), "hash")
    assert with_own_text(fetched(written, text=None), "hash") == fetched(written, text=None)


def test_folding_order_and_case_of_fields_make_no_difference() -> None:
    lines = HEAD.rstrip().split(b"\r\n")
    folded = b"\r\n".join(reversed(lines)).replace(b"Subject: a subject", b"SUBJECT:\ta\r\n  subject") + b"\r\n\r\n"
    assert id_of_head(folded) == id_of_head(HEAD)


@pytest.mark.parametrize("part", [b"09:30:01", b"one@x.example", b"Ada <", b"a subject"])
def test_another_message_with_the_same_message_id_is_another(part: bytes) -> None:
    assert id_of_head(HEAD.replace(part, b"different" if part != b"Ada <" else b"Eve <")) != id_of_head(HEAD)


def test_a_message_id_is_what_is_searched_for() -> None:
    found = read_id(id_of_head(HEAD))
    assert found is not None
    assert found.criteria() == (b"HEADER MESSAGE-ID", b'"one@x.example"')


@pytest.mark.parametrize(
    "own", [b"", b"Message-ID: <a b>\r\n", b"Message-ID: \r\n", b"Message-ID: <" + b"x" * 300 + b">\r\n"]
)
def test_without_a_usable_message_id_the_day_is_searched(own: bytes) -> None:
    head = HEAD.replace(b"Message-ID: <one@x.example>\r\n", own)
    found = read_id(id_of_head(head))
    assert found is not None
    assert found.criteria() == (b"SINCE", b"16-Nov-2026", b"BEFORE", b"19-Nov-2026")
    assert id_of_head(head, date=b"17-Nov-2026 09:30:01 +0000") != id_of_head(head)


@given(st.binary(max_size=200))
def test_every_head_has_an_id_that_is_read_again_and_fits_an_envelope(head: bytes) -> None:
    id = id_of_head(head)
    found = read_id(id)
    assert found is not None
    assert found.text == id
    assert len(id) <= 300
    assert id.isprintable()
    assert all(isinstance(each, bytes) and b"\r" not in each for each in found.criteria())


@pytest.mark.parametrize("text", ["", "x", "g-", "g-a", "e-", "e-a b", "m-abc", "m--x", "d-abc-x", "d-abc-99999999999"])
def test_what_is_no_id_is_none(text: str) -> None:
    assert read_id(text) is None


def test_the_servers_own_ids_are_used_where_there_are_any() -> None:
    schemes: list[Scheme] = [scheme_of(frozenset({each})) for each in ("X-GM-EXT-1", "OBJECTID", "IDLE")]
    assert schemes == ["gmail", "objectid", "hash"]
    assert [items_for(each) for each in schemes[:2]] == ["X-GM-MSGID X-GM-LABELS", "EMAILID"]
    assert id_of(Fetched(1, {"X-GM-MSGID": "42"}), "gmail") == "g-42"
    assert id_of(Fetched(1, {"EMAILID": ("M1",)}), "objectid") == "e-M1"
    assert id_of(Fetched(1, {"EMAILID": b"M1"}), "objectid") is None
    assert read_id("g-42") == MessageId("g-42", "gmail", "42", is_dated=False)
    assert read_id("e-M1") == MessageId("e-M1", "objectid", "M1", is_dated=False)
