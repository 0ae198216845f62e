"""Contacts from exported files, however broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.contacts import Contact, read_contacts
from support.processor_time import MILLION, within_turns

IDA = Contact("ida@x.example", "Ida Lindqvist")

VCARD_2_1 = """BEGIN:VCARD
VERSION:2.1
N:Lindqvist;Ida
FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Ida =
Lindqvist
EMAIL;PREF;INTERNET:Ida@X.example
END:VCARD
"""
VCARD_3_0 = """BEGIN:VCARD\r
VERSION:3.0\r
item1.EMAIL;type=INTERNET;type=HOME:ida@x.exam\r
 ple\r
item2.EMAIL:ida@work.example\r
FN:Ida Lindqvist\r
NOTE:mailto someone@else.example\\, not this\r
END:VCARD\r
"""
VCARD_4_0 = """begin:vcard
version:4.0
fn;language="sv:x":Ida Lindqvist
email;type="work:home,x";pref=1:mailto:ida@x.example
end:vcard
"""
GOOGLE = """Name,Given Name,Notes,E-mail 1 - Type,E-mail 1 - Value,E-mail 2 - Value
Ida Lindqvist,Ida,"a, ""b""
c",* Home,ida@x.example ::: ida@home.example,
Jo,Jo,,,,jo@y.example
"""
GOOGLE_NEW = """First Name,Last Name,E-mail 1 - Label,E-mail 1 - Value
Ida,Lindqvist,Home,ida@x.example
"""
OUTLOOK = """"Title";"First Name";"Last Name";"E-mail Address";"E-mail Type";"E-mail Display Name"\r
"";"Ida";"Lindqvist";"ida@x.example";"SMTP";"Ida (other@x.example)"\r
"""


@pytest.mark.parametrize("content", [VCARD_2_1, VCARD_4_0, GOOGLE_NEW, OUTLOOK])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_one_contact_is_read_from_every_kind_of_export(content: str, encoding: str) -> None:
    read = read_contacts(content.encode(encoding))
    assert read.contacts == (IDA,)
    assert read.problems == ()


def test_a_card_may_have_several_addresses_and_its_name_behind_them() -> None:
    assert read_contacts(VCARD_3_0.encode()).contacts == (IDA, Contact("ida@work.example", "Ida Lindqvist"))


def test_a_cell_may_hold_several_addresses_and_a_note_several_lines() -> None:
    read = read_contacts(GOOGLE.encode())
    assert read.contacts == (IDA, Contact("ida@home.example", "Ida Lindqvist"), Contact("jo@y.example", "Jo"))
    assert read.problems == ()


def test_cards_follow_each_other_and_an_address_counts_once() -> None:
    read = read_contacts((VCARD_2_1 + VCARD_3_0 + VCARD_4_0).encode())
    assert read.addresses == {"ida@x.example", "ida@work.example"}
    assert len(read.contacts) == 2


def test_names_in_other_charsets_are_repaired() -> None:
    card = b"BEGIN:VCARD\nFN:K\xe4the\nEMAIL:k@x.example\nEND:VCARD\n"
    assert read_contacts(card).contacts == (Contact("k@x.example", "Käthe"),)


def test_quoted_printable_names_are_decoded() -> None:
    card = b"BEGIN:VCARD\nFN;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:K=E4the\nEMAIL:k@x.example\nEND:VCARD\n"
    assert read_contacts(card).contacts == (Contact("k@x.example", "Käthe"),)


def test_international_domains_are_put_into_the_compared_form() -> None:
    assert read_contacts("email\nida@bücher.example\n".encode()).addresses == {"ida@xn--bcher-kva.example"}


def test_a_list_of_addresses_without_titles_is_read_too() -> None:
    assert read_contacts(b"ida@x.example\nJo <jo@y.example>\n").addresses == {"ida@x.example", "jo@y.example"}


def test_what_is_no_address_is_said_with_its_line() -> None:
    read = read_contacts(b"Name,Email\nIda,ida@x.example\nJo,nowhere\n")
    assert read.addresses == {"ida@x.example"}
    assert read.problems == ("line 3: 'nowhere' is not an address",)


@pytest.mark.parametrize(
    "content",
    [
        VCARD_2_1.replace("END:VCARD\n", ""),
        VCARD_2_1.replace("BEGIN", "junk\n\n::::\n;;;:\nBEGIN"),
        VCARD_2_1 + "BEGIN:VCARD\nEMAIL",
        VCARD_2_1.replace("VERSION:2.1", "PHOTO;ENCODING=BASE64:" + "A" * 200_000),
        'Email\nida@x.example\n"never closed\nx\n',
        'Email\n"' + "x" * 300_000 + "\nida@x.example\n",
        'Email\n"never closed\n' + ("x" * 100 + "\n") * 3000 + "ida@x.example\n",
        "Email\0\n\0ida@x.example\n",
        "\n\n\nEmail\n\nida@x.example\n",
    ],
)
def test_a_malformed_file_yields_what_can_be_understood(content: str) -> None:
    assert "ida@x.example" in read_contacts(content.encode()).addresses


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"BEGIN:VCARD", b"%PDF-1.7\n\xff\xff", b"\0" * 1000])
def test_a_file_without_contacts_says_so(content: bytes) -> None:
    read = read_contacts(content)
    assert read.contacts == ()
    assert read.problems == ("it contains no address",)


def test_of_many_problems_the_first_are_told() -> None:
    read = read_contacts(b"Email\n" + b"nowhere\n" * 1000)
    assert len(read.problems) == 21
    assert read.problems[-1] == "and 980 more"


@pytest.mark.parametrize(
    "content",
    [
        *(b"BEGIN:VCARD\n" * 200_000, b"BEGIN:VCARD\nEMAIL:" + b"a@" * 1_000_000, b'"' * 2_000_000, b"," * 2_000_000),
        *(b"BEGIN:VCARD\nFN;ENCODING=QUOTED-PRINTABLE:" + b"=\n" * 500_000, b"BEGIN:VCARD\nX\n" + b" x\n" * 500_000),
        *(
            b"Email\n" + b"a@b.c\n" * 200_000,
            b"BEGIN:VCARD\n" + b'X;a="' * 400_000,
            b"mail," * 100_000 + b"\n" + b"@," * 9,
        ),
    ],
)
def test_a_large_hostile_file_costs_little(content: bytes) -> None:
    within_turns(80 * MILLION, lambda: read_contacts(content))


@given(content=st.binary(max_size=300), card=st.booleans())
def test_any_bytes_are_read_without_an_error(content: bytes, card: bool) -> None:
    for contact in read_contacts((b"BEGIN:VCARD\nEMAIL:" if card else b"") + content).contacts:
        assert "@" in contact.address


@pytest.mark.parametrize(("count", "told"), [(20, 20), (21, 21), (25, 21)])
def test_of_many_problems_twenty_are_told_and_the_rest_is_counted(count: int, told: int) -> None:
    read = read_contacts(b"Email\n" + b"nobody\n" * count)
    assert len(read.problems) == told
    assert (read.problems[-1] == f"and {count - 20} more") == (count > 20)


def test_a_file_that_is_just_as_large_as_allowed_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"Email\nann@x.example\n"
    monkeypatch.setattr("postroom.core.mail.contacts.LARGEST_FILE", len(content))
    assert read_contacts(content).problems == ()
    assert "larger than 64 MiB" in read_contacts(content + b"\n").problems[0]
