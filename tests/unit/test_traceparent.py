"""W3C Trace Context: malformed values are ignored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.traceparent import Traceparent, is_traceparent, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"

MALFORMED = {
    "empty": "",
    "too short": GOOD[:-1],
    "too long": GOOD + "0",
    "a further field in version 00": GOOD + "-00",
    "upper case": GOOD.upper(),
    "the forbidden version": "ff" + GOOD[2:],
    "no version": GOOD[3:],
    "a trace id of zeros": f"00-{'0' * 32}-{SPAN}-01",
    "a span id of zeros": f"00-{TRACE}-{'0' * 16}-01",
    "no hexadecimal": GOOD.replace("4bf9", "4bg9"),
    "other digits than ours": GOOD.replace("00-", "٠٠-"),
    "wrong separators": GOOD.replace("-", "_"),
    "spaces around": f" {GOOD} ",
    "a new line at the end": GOOD + "\n",
    "a new line in a later version's field": f"cc{GOOD[2:]}-\n",
    "a later version with more and no separator": f"cc{GOOD[2:]}x",
    "a later version that never ends": f"cc{GOOD[2:]}-{'x' * 5000}",
}


def test_a_traceparent_is_read_and_written_as_it_was():
    parsed = parse_traceparent(GOOD)
    assert parsed == Traceparent(int(TRACE, 16), int(SPAN, 16), 1)
    assert str(parsed) == GOOD


@pytest.mark.parametrize("later", [f"cc{GOOD[2:]}", f"cc{GOOD[2:]}-what-the-future-brings", f"01{GOOD[2:]}-"])
def test_of_a_later_version_the_fields_we_know_are_read(later: str):
    assert str(parse_traceparent(later)) == GOOD


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_malformed_counts_as_not_given(text: str):
    assert not is_traceparent(text)
    assert parse_traceparent(text) is None


def test_nothing_given_is_nothing():
    assert parse_traceparent(None) is None


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 255))
def test_every_place_in_a_trace_survives_writing_and_reading(trace_id: int, span_id: int, flags: int):
    place = Traceparent(trace_id, span_id, flags)
    assert parse_traceparent(str(place)) == place
