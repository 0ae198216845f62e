"""A stranger's text, made safe to show."""

import unicodedata
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.interfaces.dashboard.display import clock, exact, iso, several_lines, shown, words

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=400)


def test_honest_text_stays_as_it_is() -> None:
    for text in ("Dinner?", "Grüße aus Köln", "ההזמנה שלך", "family 👨‍👩‍👧 ❤️", "naïve", "<b>&amp;</b>"):
        assert shown(text) == text


def test_a_missing_text_is_empty() -> None:
    assert shown(None) == ""


def test_line_breaks_and_runs_of_space_become_one_space() -> None:
    assert shown("a\r\n\r\n\tb\u2028c   d ") == "a b c d"


def test_overrides_of_direction_are_spelled_out() -> None:
    assert shown("invoice\u202egpj.exe") == "invoice[U+202E]gpj.exe"


def test_control_characters_are_pictured_and_half_characters_spelled_out() -> None:
    assert shown("a\x00b\x1bc\x7fd\x9be") == "a␀b␛c␡d[U+009B]e"
    assert shown("a\ud800b") == "a[U+D800]b"


def test_letters_of_which_nothing_is_seen_are_spelled_out() -> None:
    assert shown("pay\u3164pal\u2800\u1160") == "pay[U+3164]pal[U+2800][U+1160]"


def test_silent_characters_of_honest_mail_vanish() -> None:
    assert shown("\ufeffwel\u00adcome\u200b\u200f") == "welcome"


def test_a_pile_of_marks_is_cut_to_a_few() -> None:
    assert shown("Z" + "\u0334" * 500 + "x") == "Z" + "\u0334" * 4 + "x"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert shown("W" * 10_000, 20) == "W" * 19 + "…"
    assert shown("\u0334" * 10_000, 20).endswith("…")


@given(ANY_TEXT, st.integers(2, 80))
def test_whatever_comes_the_result_is_one_bounded_encodable_line_without_controls(text: str, limit: int) -> None:
    result = shown(text, limit)
    assert len(result) <= limit
    assert result.encode().decode() == result
    assert not {unicodedata.category(char) for char in result} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(result) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def test_names_from_the_code_become_words_and_labels_stay_as_they_are() -> None:
    assert words("high_priority") == "high priority"


def test_times_are_those_of_the_readers_zone_and_say_as_much_as_is_open() -> None:
    moment = datetime(2026, 3, 4, 1, 2, 3, tzinfo=timezone(timedelta(hours=5)))
    assert iso(moment) == "2026-03-03T20:02:03Z"
    same_day, next_day, years_later = *(moment + timedelta(hours=each) for each in (2, 4)), moment.replace(year=2030)
    assert clock(moment, ZoneInfo("UTC"), same_day) == "20:02:03"
    assert clock(moment, ZoneInfo("UTC"), next_day) == "3 Mar, 20:02"
    assert clock(moment, ZoneInfo("Pacific/Auckland"), next_day) == "09:02:03"
    assert clock(moment, ZoneInfo("UTC"), years_later) == "3 Mar 2026, 20:02"
    assert exact(moment, ZoneInfo("Europe/Berlin")) == "Tuesday, 3 March 2026, 21:02:03 CET"
    assert exact(moment, ZoneInfo("Asia/Kathmandu")) == "Wednesday, 4 March 2026, 01:47:03 UTC+0545"


@pytest.mark.parametrize(
    ("at", "shown", "letters"),
    [("2026-10-25T00:30:00+00:00", "02:30:00", "CEST"), ("2026-10-25T01:30:00+00:00", "02:30:00", "CET"),
     ("2026-03-29T00:59:59+00:00", "01:59:59", "CET"), ("2026-03-29T01:00:00+00:00", "03:00:00", "CEST")],
)  # fmt: skip
def test_the_hours_that_summer_time_repeats_or_skips_are_told_apart(at: str, shown: str, letters: str) -> None:
    moment, berlin = datetime.fromisoformat(at), ZoneInfo("Europe/Berlin")
    assert clock(moment, berlin, moment) == shown
    assert exact(moment, berlin).endswith(f"{shown} {letters}")


def test_a_text_of_several_lines_keeps_them_and_nothing_hidden() -> None:
    hostile = "Dear Mara,\r\n\n\n\n  the boat\u202e left\x1b[31m\n"
    assert several_lines(hostile) == "Dear Mara,\n\nthe boat[U+202E] left␛[31m"
    assert several_lines(None) == ""
    assert several_lines("\n\nbelow") == "below"
    assert len(several_lines("W" * 9_000)) == 2_000
    assert several_lines("line\n" * 9_000).count("\n") == 4_999
