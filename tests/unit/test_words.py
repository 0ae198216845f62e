"""Whole words and phrases: in any case, without accents, across whatever stands between them."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.core.rules.facts import LOOKS_BEFORE_SPLITTING, FoldedField
from postroom.core.rules.words import WordsRefused, folded, joined, quoted_phrase, read_phrases, words_of
from support.naive_words import has_phrases, naive_words
from support.processor_time import MILLION, within_turns
from support.scale import scale

# Latin with and without accents, Greek, Cyrillic, Hebrew with points, Han, figures, and all that stands between words.
LETTERS = "abzABZ019äéßøÆıİſﬁ½²Σσςώ\u0301\u0308яЁїאָ請求書　 \n\t.,-_'’&@/\u00ad\u200b\u200d#"
texts = st.text(st.sampled_from(LETTERS), max_size=40)
words = texts.map(naive_words).filter(bool).map(lambda found: found[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Votre facture n°42,\r\npayée", "votre facture n 42 payee"),
        ("STRASSE, Straße", "strasse strasse"),
        ("e\u0301te\u0301 été", "ete ete"),
        ("İstanbul", "istanbul"),
        ("co\u00adop zero\u200bwidth", "coop zerowidth"),
        ("don't_stop", "don t stop"),
        ("ida@shop.example", "ida shop example"),
        ("請求書を送る", "請 求 書 を 送 る"),
        ("ガガーリン", "ガ ガ ー リ ン"),
        ("한국어 메일", "한국어 메일"),
        ("हिन्दी", "हिनदी"),
        ("!?…", ""),
        ("", ""),
    ],
)
def test_a_text_is_folded_to_its_words(text: str, expected: str) -> None:
    assert unicodedata.normalize("NFC", " ".join(words_of(text))) == expected
    assert unicodedata.normalize("NFC", folded(text)) == f" {expected} "


@settings(max_examples=scale(300, 50_000))
@given(texts)
def test_words_are_those_of_the_plain_way(text: str) -> None:
    assert words_of(text) == naive_words(text)


@settings(max_examples=scale(300, 50_000))
@given(st.lists(words, min_size=1, max_size=3), st.booleans(), texts, st.sampled_from([" ", "\n", ", ", "", " x "]))
def test_phrases_are_found_as_in_the_plain_way(chosen: list[str], quoted: bool, around: str, between: str) -> None:
    wanted = quoted_phrase(" ".join(chosen)) if quoted else " ".join(chosen)
    for text in (around, f"{around} {between.join(chosen)} {around}", f"{around}{between.join(chosen)}{around}"):
        found = all(phrase in folded(text) for phrase in read_phrases(wanted))
        assert found == has_phrases(wanted, [text])


@pytest.mark.parametrize(
    ("wanted", "phrases"),
    [
        ("Invoice", ["invoice"]),
        ('invoice "past  due" INVOICE', ["invoice", "past due"]),
        ("shop.example", ["shop example"]),
        ("AT & T", ["at", "t"]),
        ('"-not OR {this}"', ["not or this"]),
        ("+invoice – paid", ["invoice", "paid"]),
    ],
)
def test_words_to_search_for_are_read(wanted: str, phrases: list[str]) -> None:
    assert read_phrases(wanted) == tuple(joined(each.split()) for each in phrases)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ('"past due', "quotation mark"),
        ("!!!", "no letter"),
        ('""', "no letter"),
        ("invoice -draft", "minus before 'draft'"),
        ("invoice OR receipt", "operator OR"),
        ("a AND b", "operator AND"),
        ("{a b}", "'{'"),
        ("invo*", r"'\*'"),
        ("a|b", "'|'"),
    ],
)
def test_operators_are_not_taken_for_words(wanted: str, problem: str) -> None:
    with pytest.raises(WordsRefused, match=problem.replace("{", r"\{").replace("|", r"\|")):
        read_phrases(wanted)


@pytest.mark.parametrize("text", ["a" + "\u0301" * 200_000, "a b" * 70_000, "я" * 200_000, "\u0315\u0300" * 100_000])
def test_any_text_is_folded_in_linear_time(text: str) -> None:
    assert within_turns(40 * MILLION, lambda: words_of(text)) is not None


def test_a_field_answers_the_same_before_and_after_it_is_split() -> None:
    field = FoldedField([folded("Past due: invoice 17"), folded("Ida Holm")])
    asked = {" due invoice ": True, " invoice due ": False, " ida ": True, " 17 ida ": False, " id ": False}
    for _ in range(LOOKS_BEFORE_SPLITTING):
        assert {phrase: field.has(phrase, frozenset(phrase.split())) for phrase in asked} == asked


@given(st.text(st.sampled_from("aB1é漢\n\t .;\u3000\u0301"), max_size=40))
def test_a_folded_text_has_single_blanks_between_its_words(text: str) -> None:
    assert folded(text) == f" {' '.join(words_of(text))} "
