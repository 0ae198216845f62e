"""Every legal address survives every input path, and an invalid one is refused, never cut down to another's."""

import binascii
import csv
import io
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.core.mail.addresses import MOST_CHARACTERS, addresses, canonical, listed_addresses
from postroom.core.mail.contacts import contact_address, read_contacts
from postroom.core.mail.tiers import Known, assign_tier

ATEXT = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789!#$%&'*+-/=?^_`{|}~"
WORDS = "äößéñøłπжд中文हिन्दी"

atoms = st.text(ATEXT, min_size=1, max_size=20) | st.text(ATEXT + WORDS, min_size=1, max_size=10)
dot_atoms = st.lists(atoms, min_size=1, max_size=4).map(".".join)
quoted = st.text(ATEXT + ' ."\\@,;:<>()[]', max_size=15).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    ["bücher", "中文", "x" * 63]
)
domains = st.lists(labels, min_size=1, max_size=4).map(".".join) | st.sampled_from(
    ["[192.0.2.1]", "[IPv6:2001:db8::1]"]
)
legal = st.builds("{}@{}".format, dot_atoms | quoted, domains)
names = st.sampled_from(["", "Pat", '"O\'Brien, Pat"', '"a@b.example"', "Pat (at home)"])

KNOWN = [
    "pat.o'brien@x.example",
    "mara+shop@x.example",
    "a/b=c!d#e$f%g&h*i?j^k_l`m{n|o}p~q@x.example",
    '"john doe"@x.example',
    '"a@b,c;d:e<f>g"@x.example',
    '"quote\\"d and \\\\"@x.example',
    "jörg@bücher.example",
    "用户@例子.example",
    "mara@[192.0.2.1]",
    "root@localhost",
    f"{'l' * 64}@{'d' * 63}.{'e' * 63}.{'f' * 63}.example",
]


def vcard(version: str, parameters: str, value: str) -> bytes:
    lines = f"BEGIN:VCARD\r\nVERSION:{version}\r\nFN:Pat\r\nEMAIL{parameters}:{value}"
    folded = "\r\n ".join(lines.split("\r\n")[-1][at : at + 60] for at in range(0, len(lines.split("\r\n")[-1]), 60))
    return "\r\n".join([*lines.split("\r\n")[:-1], folded, "END:VCARD\r\n"]).encode()


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,").replace(";", "\\;")


def cell(*texts: str) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([["Name", "E-mail 1 - Value"], *(["Pat", text] for text in texts)])
    return written.getvalue().encode()


def ways_in(address: str, name: str) -> dict[str, frozenset[str]]:
    """What each way in makes of one address."""
    whole = f"{name} <{address}>"
    printable = binascii.b2a_qp(address.encode(), quotetabs=True, istext=False).decode().replace("\n", "\r\n")
    found = {
        "csv": read_contacts(cell(address)).addresses,
        "csv with a name": read_contacts(cell(whole)).addresses,
        "csv, several": read_contacts(cell(f"{address}, ida@x.example")).addresses - {"ida@x.example"},
        "csv of google": read_contacts(cell(f"ida@x.example ::: {address}")).addresses - {"ida@x.example"},
        "vcard 2.1": read_contacts(
            b"BEGIN:VCARD\r\nVERSION:2.1\r\nEMAIL;INTERNET;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:"
            + printable.encode()
            + b"\r\nEND:VCARD\r\n"
        ).addresses,
        "vcard 3.0": read_contacts(vcard("3.0", ";TYPE=INTERNET", escaped(address))).addresses,
        "vcard 4.0": read_contacts(vcard("4.0", ';TYPE="work"', f"mailto:{quote(address)}")).addresses,
        "mcp": frozenset(filter(None, [contact_address(whole), contact_address(address)])),
        "a header": frozenset(addresses(whole)),
        "a list in a header": frozenset(addresses(f"Friends: {whole}, {address};")),
        "a bare header": frozenset(addresses(address)),
    }
    return found


@settings(deadline=None, max_examples=300)
@given(address=legal, name=names)
def test_every_legal_address_survives_every_way_in(address: str, name: str) -> None:
    wanted = canonical(address)
    assert wanted is not None, address
    assert canonical(wanted) == wanted, "the compared form is its own"
    for way, found in ways_in(address, name).items():
        assert found == {wanted}, way


@pytest.mark.parametrize("address", KNOWN)
def test_addresses_that_are_often_refused_survive(address: str) -> None:
    wanted = canonical(address)
    assert wanted is not None
    for way, found in ways_in(address, "Pat").items():
        assert found == {wanted}, way


@settings(deadline=None)
@given(address=legal)
def test_the_sender_of_a_contact_is_recognised(address: str) -> None:
    contacts = read_contacts(cell(address)).addresses
    known = Known.of(["me@x.example"], contacts)
    assert assign_tier((("From", f"Pat <{address}>"),), known).rule == "known_contact"
    assert assign_tier((("From", f"x{address}"),), known).rule != "known_contact"


def test_an_address_with_an_apostrophe_is_not_that_of_somebody_else() -> None:
    read = read_contacts(b"Name,Email\nPat,pat.o'brien@x.example\n")
    assert (read.addresses, read.problems) == ({"pat.o'brien@x.example"}, ())
    read = read_contacts(b"BEGIN:VCARD\nFN:Pat\nEMAIL:pat.o'brien@x.example\nEND:VCARD\n")
    assert (read.addresses, read.problems) == ({"pat.o'brien@x.example"}, ())


NONE = [
    "pat o'brien@x.example",
    "a\\friend@x.example",
    'evil"friend@x.example',
    '"evil"friend@x.example',
    "evil(friend@x.example",
    "evil@friend@x.example",
    "evil@y.example:friend@x.example",
    "friend@x.example'",
    "friend@x.example>",
    "friend@x..example",
    "friend@-\u200b.example",
    "friend@x.example/evil",
    "<friend@x.example",
    "<evil> friend@x.example",
    "<friend@x.example> and more",
    "a, friend@x.example",
    "friend@x.example; nobody",
    "fri\u202eend@x.example",
    "friend@",
    "@x.example",
    "nobody",
    f"{'l' * 300}@x.example",
    f"friend@x.example{'.evil' * 60}",
    f"friend@{'x' * 64}.example",
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_address_is_refused_and_counted_and_nothing_of_it_is_taken(text: str) -> None:
    for content in (cell(text), vcard("3.0", "", escaped(text))):
        read = read_contacts(content)
        assert (read.addresses, len(read.problems)) == (frozenset(), 1), read
    assert contact_address(text) is None


@settings(deadline=None)
@given(text=st.text(ATEXT + ' "@.,;:<>()[]\\\n', max_size=40))
def test_nothing_is_taken_that_was_not_written_as_an_address_of_its_own(text: str) -> None:
    """Each address found is a whole entry of the text, or stands in its own brackets."""
    for entry in listed_addresses(text):
        if entry.address is not None:
            assert entry.text in text
            assert canonical(entry.text) == entry.address or entry.text.rstrip(" )").endswith(">") or "(" in entry.text


def test_a_list_that_is_too_long_is_not_cut_in_the_middle_of_an_address() -> None:
    evil = "friend@x.example.evil.example"
    padding = "a@y.example," * ((MOST_CHARACTERS - 16) // 12)
    value = f"{padding}{',' * (MOST_CHARACTERS - len(padding) - 16)}{evil}"
    assert value[:MOST_CHARACTERS].endswith("friend@x.example")
    assert set(addresses(value)) == {"a@y.example"}


@pytest.mark.parametrize(
    "header",
    [
        "(his (second) address) ann@x.example",
        "ann@x.example (his (second) address, or: bob@y.example)",
        "(bob@y.example) ann@x.example, (never closed, bob@y.example",
        "Ann (of \\( bob@y.example) <ann@x.example>",
    ],
)
def test_what_stands_in_a_comment_is_no_address_and_comments_nest(header: str) -> None:
    assert addresses(header) == ["ann@x.example"]


def test_what_follows_a_comment_counts() -> None:
    assert addresses("ann@x.example (one), bob@y.example (two (2)), cy@z.example") == [
        "ann@x.example",
        "bob@y.example",
        "cy@z.example",
    ]
