"""Reading what IMAP servers send: whole, in pieces, malformed and hostile."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mailboxes.imap.errors import AnswerTooLarge, BadAnswer
from postroom.mailboxes.imap.responses import Continuation, Data, Limits, Response, ResponseReader, Status, Value


def read(*chunks: bytes, limits: Limits | None = None) -> list[Response]:
    reader = ResponseReader(limits)
    found = [each for chunk in chunks for each in reader.feed(chunk)]
    assert reader.is_between_responses
    return found


def values_of(line: bytes) -> tuple[Value, ...]:
    (found,) = read(line + b"\r\n")
    assert isinstance(found, Data)
    return found.values


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"* OK [CAPABILITY IMAP4rev1 IDLE] ready", Status(None, "OK", "CAPABILITY", ("IMAP4rev1", "IDLE"), "ready")),
        (b"* PREAUTH hello", Status(None, "PREAUTH", None, (), "hello")),
        (b"* BYE [UNAVAILABLE] later", Status(None, "BYE", "UNAVAILABLE", (), "later")),
        (b"P1 OK [COPYUID 7 1:2 4,6] done", Status("P1", "OK", "COPYUID", ("7", "1:2", "4,6"), "done")),
        (b"P2 no [AUTHENTICATIONFAILED]", Status("P2", "NO", "AUTHENTICATIONFAILED", (), "")),
        (b"P3 BAD", Status("P3", "BAD")),
        (b"* OK [PERMANENTFLAGS (\\Seen \\*)] ok", Status(None, "OK", "PERMANENTFLAGS", (("\\Seen", "\\*"),), "ok")),
        (b"* OK [ALERT ((( broken] text", Status(None, "OK", "ALERT", (), "text")),
        (b"* OK see {5}", Status(None, "OK", None, (), "see {5}")),
        (b"+ idling", Continuation(b"idling")),
        (b"+", Continuation(b"")),
    ],
)
def test_a_status_is_read(line: bytes, expected: Response) -> None:
    assert read(line + b"\r\n") == [expected]


def test_data_is_read() -> None:
    (found,) = read(b"* 12 FETCH (UID 7 FLAGS (\\Seen $x) BODY[HEADER.FIELDS (DATE)]<0> NIL)\r\n")
    assert isinstance(found, Data)
    assert (found.kind, found.number) == ("FETCH", 12)
    assert found.values == (("UID", "7", "FLAGS", ("\\Seen", "$x"), "BODY[HEADER.FIELDS (DATE)]<0>", None),)


def test_strings_are_told_from_atoms_and_nil() -> None:
    assert values_of(b'* LIST (\\A) "/" "NIL"') == (("\\A",), b"/", b"NIL")
    assert values_of(b"* LIST () NIL nil") == ((), None, None)
    assert values_of(rb'* X "a \"b\" \\ c" ""') == (b'a "b" \\ c', b"")


@pytest.mark.parametrize("announced", [b"{6}", b"{6+}", b"~{6}"])
def test_a_literal_may_contain_anything(announced: bytes) -> None:
    content = b")\r\n{3}"
    (found,) = read(b"* 1 FETCH (A " + announced + b"\r\n" + content + b" B 2)\r\n")
    assert isinstance(found, Data)
    assert found.values == (("A", content, "B", "2"),)


SAMPLE = (
    b'* OK hi\r\n* LIST (\\HasNoChildren) "/" {5}\r\na\r\nbc\r\n* 1 FETCH (UID 3 X {0}\r\n Y "q\\"")\r\n'
    b"+ go\r\nP1 OK [UIDNEXT 4] done\r\n"
)


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=12))
def test_the_cuts_between_chunks_make_no_difference(cuts: list[int]) -> None:
    ends = sorted({0, *cuts, len(SAMPLE)})
    assert read(*(SAMPLE[a:b] for a, b in pairwise(ends))) == read(SAMPLE)


def written(value: Value) -> bytes:
    match value:
        case None:
            return b"NIL"
        case str():
            return value.encode()
        case bytes():
            return b"{%d}\r\n" % len(value) + value
        case _:
            return b"(" + b" ".join(map(written, value)) + b")"


ATOMS = st.from_regex(r"[A-Za-z0-9$\\.+-]{1,12}", fullmatch=True).filter(lambda each: each.upper() != "NIL")
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | ATOMS | st.binary(max_size=30),
    lambda inner: st.lists(inner, max_size=5).map(tuple),
    max_leaves=15,
)


@given(st.lists(VALUES, max_size=6).map(tuple))
def test_what_is_written_is_read_again(values: tuple[Value, ...]) -> None:
    assert values_of(b"* THING " + b" ".join(map(written, values))) == values


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"* ", b"\r\n", b"{9}\r\n", b"(", b'"', b"P1 OK ", b"[A"])))
def test_bytes_that_are_no_imap_are_read_or_refused(chunks: list[bytes]) -> None:
    reader = ResponseReader(Limits(line=400, literal=100, response=600, values=20, depth=4))
    try:
        for chunk in chunks:
            reader.feed(chunk)
    except BadAnswer:
        pass


@pytest.mark.parametrize(
    "line",
    [b"hello there", b"* ", b"* (", b"* X )", b'* X "open', b'* X "a\x00b"', b"* X {x}", b"* X \x00", b"* X a\tb"],
)
def test_a_malformed_line_is_refused(line: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(line + b"\r\n")


@pytest.mark.parametrize(
    ("sent", "limits"),
    [
        (b"* X {4000000000}\r\n", Limits()),
        (b"* X {99999999999999999999}\r\n", Limits()),
        (b"* X " + b"a" * 3_000, Limits(line=2_000)),
        (b"* X {900}\r\n" + b"a" * 900 + b" {900}\r\n" + b"a" * 900, Limits(response=1_500)),
        (b"* X " + b"{0}\r\n " * 50, Limits(literals=20)),
        (b"* X " + b"a " * 50 + b"\r\n", Limits(values=20)),
    ],
    ids=["literal", "longer literal", "line", "response", "literals", "values"],
)
def test_a_size_that_is_not_plausible_is_refused_before_it_comes(sent: bytes, limits: Limits) -> None:
    with pytest.raises(AnswerTooLarge):
        ResponseReader(limits).feed(sent)


def test_nesting_is_refused_before_it_exhausts_the_stack() -> None:
    with pytest.raises(BadAnswer, match="nested"):
        read(b"* X " + b"(" * 100_000 + b"\r\n")


def test_memory_stays_within_the_bound_of_a_response() -> None:
    limits = Limits(line=2**18, literal=2**18, response=2**19, values=2_000)
    tracemalloc.start()
    try:
        reader = ResponseReader(limits)
        chunks = (reader.feed(b"* X " * 4_000) for _ in range(1_000))
        with pytest.raises(AnswerTooLarge):
            any(chunks)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
