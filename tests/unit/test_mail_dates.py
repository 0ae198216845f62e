"""The `Date` header in the forms in which mail has it, and the time that a message is given."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.dates import EARLIEST, LONGEST_DATE, header_date, sent_at, written_at

OBSERVED = datetime(2026, 11, 15, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fri, 21 Nov 1997 09:55:06 -0600", "1997-11-21T15:55:06"),
        ("21 Nov 1997 09:55 -0600", "1997-11-21T15:55:00"),
        # Comments, nested too, blanks and line breaks wherever RFC 5322 once allowed them.
        ("Thu,\r\n 13\r\n Feb\r\n 1997\r\n 23:32\r\n -0330 (Newfoundland Time)", "1997-02-14T03:02:00"),
        ("Fri, 21 Nov 1997 09(comment):   55  :  06 -0600", "1997-11-21T15:55:06"),
        (r"Fri(a (b \) c)), 21 Nov 1997 09:55:06 (CST) -0600", "1997-11-21T15:55:06"),
        ("(x (y) 24 Dec) 21 Nov 1997 09:55:06 -0600", "1997-11-21T15:55:06"),
        (r"(x \) 24 Dec) 21 Nov 1997 09:55:06 -0600", "1997-11-21T15:55:06"),
        ("(x (y (z) 1 Feb) 24 Dec) 21 Nov 1997 09:55:06 (a) -0600", "1997-11-21T15:55:06"),
        ("Fri (a comment), 21 Nov 97 09 : 55 : 06 EST", "1997-11-21T14:55:06"),
        # Years of two and three digits.
        ("21 Nov 97 09:55:06 GMT", "1997-11-21T09:55:06"),
        ("21 Nov 26 09:55:06 GMT", "2026-11-21T09:55:06"),
        ("21 Nov 49 09:55:06 GMT", "2049-11-21T09:55:06"),
        ("21 Nov 50 09:55:06 GMT", "1950-11-21T09:55:06"),
        ("21 Nov 68 09:55:06 GMT", "1968-11-21T09:55:06"),
        ("21 Nov 2060 09:55:06 GMT", "2060-11-21T09:55:06"),
        ("21 Nov 102 09:55:06 GMT", "2002-11-21T09:55:06"),
        # Obsolete zones: those of America are known, military and made-up ones count as UTC.
        ("21 Nov 1997 09:55:06 EST", "1997-11-21T14:55:06"),
        ("21 Nov 1997 09:55:06 pdt", "1997-11-21T16:55:06"),
        ("21 Nov 1997 09:55:06 Z", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06 K", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06 Europe/Berlin", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06 -0000", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06 +2359", "1997-11-20T09:56:06"),
        ("21 Nov 1997 09:55:06 +2400", "1997-11-21T09:55:06"),
        ("21 Nov 1997 09:55:06 +9959", "1997-11-21T09:55:06"),
        # Forms that only occur.
        ("Thu, 1 Jan 2026 10:00:00 +02:00", "2026-01-01T08:00:00"),
        ("Thu, 1 Jan 2026 10:00:00 GMT+0200", "2026-01-01T08:00:00"),
        ("Thu, 1 Jan 2026 10:00:00 UTC+02:00", "2026-01-01T08:00:00"),
        ("Fr., 21 Nov 2025 09:55:06 +0100", "2025-11-21T08:55:06"),
        ("Fri Nov 21 09:55:06 PST 2025", "2025-11-21T17:55:06"),
        ("21-Nov-2025 09:55:06 +0100", "2025-11-21T08:55:06"),
        ("2025-11-21T09:55:06+01:00", "2025-11-21T08:55:06"),
        ("2025-11-21 09:55:06", "2025-11-21T09:55:06"),
        ("Thu, 31 Dec 1998 23:59:60 +0000", "1998-12-31T23:59:59"),
    ],
)
def test_a_date_is_read_in_many_forms(text: str, expected: str) -> None:
    assert header_date(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "31 Feb 2026 10:00:00 +0000", "1 Jan 2026 25:00:00", "1 Jan 99999 10:00:00"),
        *("Fri, 31 Dec 9999 23:59:59 -1200", "2026-13-45T10:00:00Z", "(" * 150, "9" * 9999),
    ],
)
def test_what_is_no_date_gives_none(text: str) -> None:
    assert header_date(text) is None


@given(st.text(max_size=LONGEST_DATE * 2) | st.from_regex(r"[0-9]{1,5}[ -]Nov[ -][0-9]{1,6} [0-9:+() \\-]{0,30}"))
def test_no_date_is_an_error(text: str) -> None:
    moment = header_date(text)
    assert moment is None or moment.tzinfo is UTC


@given(st.integers(1, 200 * 365 * 86_400), st.integers(-14 * 60, 14 * 60))
def test_a_date_as_programs_write_it_is_read_exactly(seconds: int, minutes_east: int) -> None:
    moment = (EARLIEST + timedelta(seconds=seconds)).astimezone(timezone(timedelta(minutes=minutes_east)))
    assert header_date(format_datetime(moment)) == moment


DATE = "Sat, 14 Nov 2026 10:00:00 +0200"
WRITTEN = datetime(2026, 11, 14, 8, tzinfo=UTC)
GIVEN = datetime(2026, 11, 10, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given_time", "date", "expected"),
    [
        # The provider's time decides.
        (GIVEN.isoformat(), DATE, GIVEN),
        (GIVEN.isoformat(), "nonsense", GIVEN),
        # Without one that can be, the header.
        (None, DATE, WRITTEN),
        ("", DATE, WRITTEN),
        ("2026-11-10T08:00:00", DATE, WRITTEN),
        ("1970-01-01T00:00:00Z", DATE, WRITTEN),
        ("2030-01-01T00:00:00Z", DATE, WRITTEN),
        ("9999-12-31T23:59:59-12:00", DATE, WRITTEN),
        ("0001-01-01T00:00:00+12:00", DATE, WRITTEN),
        ("1970-12-31T23:59:59Z", DATE, WRITTEN),
        ("1971-01-01T00:00:00Z", DATE, EARLIEST),
        ("2026-11-16T08:00:00Z", DATE, OBSERVED + timedelta(days=1)),
        ("2026-11-16T08:00:01Z", DATE, WRITTEN),
        # Without either, when it was observed.
        (None, None, OBSERVED),
        (None, "nonsense", OBSERVED),
        (None, "Thu, 1 Jan 1970 00:00:00 +0000", OBSERVED),
        (None, "Fri, 1 Jan 2038 00:00:00 +0000", OBSERVED),
        # A clock may be a little fast.
        (None, "Sun, 15 Nov 2026 20:00:00 +0000", datetime(2026, 11, 15, 20, tzinfo=UTC)),
    ],
)
def test_the_time_of_a_message_is_the_first_that_can_be_true(
    given_time: str | None, date: str | None, expected: datetime
) -> None:
    headers = (("Subject", "Hello"), *(() if date is None else (("DATE", date),)))
    assert sent_at(given_time, headers, OBSERVED) == expected


@pytest.mark.parametrize("observed", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_any_time_of_observation_will_do(observed: datetime) -> None:
    assert sent_at(None, (("Date", DATE),), observed) == min(observed, WRITTEN)


def test_of_two_dates_the_first_counts() -> None:
    assert written_at((("Date", DATE), ("Date", "Sun, 15 Nov 2026 10:00:00 +0000"))) == WRITTEN
    assert written_at((("Date", "nonsense"), ("Date", DATE))) is None
    assert written_at(()) is None


def test_a_date_before_1971_is_none() -> None:
    assert written_at((("Date", "Thu, 31 Dec 1970 23:59:59 +0000"),)) is None
    assert written_at((("Date", "Fri, 1 Jan 1971 00:00:00 +0000"),)) == EARLIEST
