"""A stranger's text, made safe to show."""

import unicodedata
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from postroom.interfaces.dashboard.display import clock, iso, several_lines, shown, words

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


def test_times_are_given_in_utc() -> None:
    moment = datetime(2026, 3, 4, 1, 2, 3, tzinfo=timezone(timedelta(hours=5)))
    assert iso(moment) == "2026-03-03T20:02:03Z"
    assert clock(moment) == "03 Mar, 20:02:03 UTC"


def test_a_text_of_several_lines_keeps_them_and_nothing_hidden() -> None:
    hostile = "Dear Mara,\r\n\n\n\n  the boat\u202e left\x1b[31m\n"
    assert several_lines(hostile) == "Dear Mara,\n\nthe boat[U+202E] left␛[31m"
    assert several_lines(None) == ""
    assert several_lines("\n\nbelow") == "below"
    assert len(several_lines("W" * 9_000)) == 2_000
    assert several_lines("line\n" * 9_000).count("\n") == 4_999
