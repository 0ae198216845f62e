"""What redaction promises, for every spelling: docs/reference/model.md lists it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.triage.decide.redaction import normalised, redacted

SENDER = "ann@shop.example"
DIGITS = ("0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗", "⓪①②③④⑤⑥⑦⑧⑨")
SPACES = (" ", "\u00a0", "\u202f", "\u2007", "\u2009", "\u3000", "\t")
HYPHENS = ("-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212", "\ufe63", "\uff0d")
DOTS = (".", "·", "•", "\uff0e", "\u2024", "\u3002", "\uff61")
INVISIBLE = ("", "\u200b", "\u00ad", "\u2060", "\ufeff", "\u200e", "\u202e", "\ufe0f\u20e3", "\u0336")
GAPS = (*SPACES, *HYPHENS, *DOTS, "/", "_")


@st.composite
def spelled(draw: st.DrawFn, number: str, groups: tuple[int, ...] = ()) -> str:
    """The number in one script's digits, with one kind of gap between its groups and invisible characters within."""
    digits, gap, ghost = (
        draw(st.sampled_from(DIGITS)),
        draw(st.sampled_from(("", *GAPS))),
        draw(st.sampled_from(INVISIBLE)),
    )
    written = [digits[int(each)] + ghost if each.isascii() and each.isdigit() else each for each in number]
    parts: list[str] = []
    for size in groups or (len(written),):
        parts.append("".join(written[:size]))
        written = written[size:]
    return gap.join([*parts, *(["".join(written)] if written else [])])


def hidden(text: str) -> str:
    return redacted(f"Dear Bob, it is {text} as you know.", SENDER)


@given(spelled("4111111111111111", (4, 4, 4, 4)))
def test_a_card_number_is_hidden_in_every_spelling(text: str) -> None:
    assert hidden(text) == "Dear Bob, it is [card] as you know."


@given(spelled("12345678", (2, 3, 3)))
def test_a_long_number_is_hidden_in_every_spelling(text: str) -> None:
    assert hidden(text) == "Dear Bob, it is [number] as you know."


@given(st.sampled_from(("+", "\uff0b")), spelled("49301234567", (2, 2, 7)))
def test_a_phone_number_is_hidden_in_every_spelling(plus: str, text: str) -> None:
    assert hidden(plus + text) == "Dear Bob, it is [phone] as you know."


@given(spelled("89370400440532013000", (2, 4, 4, 4, 4, 2)), st.sampled_from(("DE", "de", "\uff24\uff25")))
def test_an_account_number_is_hidden_in_every_spelling(text: str, country: str) -> None:
    assert hidden(country + text) == "Dear Bob, it is [iban] as you know."


@given(
    st.sampled_from(
        (
            "bob",
            '"bob smith"',
            "“bob smith”",
            "o'brien",
            "bob+tag",
            '"bob\\"x"',
            "ｂｏｂ",
            "b\u200bob",
            "bob(home)",
            "bob=x",
        )
    ),
    st.sampled_from(("@", "\uff20", "\ufe6b", " @ ", "%40")),
    st.sampled_from(("home.example", "ｈｏｍｅ.example", "home.\u200bexample", "heimat.münchen.example")),
)
def test_an_address_is_hidden_in_every_spelling(local: str, sign: str, domain: str) -> None:
    assert hidden(local + sign + domain) == "Dear Bob, it is [address] as you know."


def test_an_address_with_a_numeric_domain_is_hidden() -> None:
    assert hidden("bob@[192.0.2.1]") == "Dear Bob, it is [address] as you know."


@given(
    st.sampled_from(("https://", "http://", "ftp://", "//", "https://user:word@", "")),
    st.sampled_from(("shop.example", "www.shop.example", "shop.example:8443", "läden.example")),
    st.sampled_from(("", "/", "/orders/show")),
    st.sampled_from(("?token=s3cret", "#s3cret", ";jsessionid=s3cret", "\uff1ftoken=s3cret", "?a='s3cret'")),
)
def test_what_follows_the_path_of_a_link_is_hidden(scheme: str, host: str, path: str, secret: str) -> None:
    shown = hidden(f"{scheme}{host}{path}{secret}")
    assert "s3cret" not in shown
    assert "word" not in shown
    assert f"{host}{path}[…]" in shown


def test_a_local_link_is_hidden_too() -> None:
    assert "s3cret" not in hidden("intranet/login?token=s3cret")


@pytest.mark.parametrize(
    "text",
    [
        "In 2026 it cost 1,299.00 EUR, 3 of 12 pieces, at 10:30.",
        "1299.00 EUR, or 12.345,67 in other words",
        "Is it shop.example? Yes; and 2025 - 2026 too.",
        "http://shop.example/plain and Ann@Shop.example.",
        "\u4eca\u5929\u3002\u660e\u5929",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redacted(text, SENDER) == text


@given(st.text())
def test_normalising_leaves_one_spelling(text: str) -> None:
    once = normalised(text)
    assert all(each in "\n\t" or each.isprintable() for each in once)
    assert not any(each.isdigit() and not each.isascii() for each in once)


@given(st.text(alphabet=st.sampled_from("0123456789 .-@a٣\u00a0\n:/?#\"'")))
def test_no_six_digits_stand_together_in_what_is_shown(text: str) -> None:
    shown = redacted(text, SENDER)
    run = 0
    for each in shown:
        run = run + 1 if each.isdigit() else 0
        assert run < 6, shown
