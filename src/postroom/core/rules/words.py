"""Whole words and phrases, as people search for them: in any case, with or without accents, across line breaks.

A text is folded once: letters and digits in small letters without accents, and one blank for everything between them. A
word or phrase, folded in the same way, is then found as a plain part of the text:

    folded("Votre facture n°42,\\npayée") == " votre facture n 42 payee "
    " facture n 42 " in folded(…)

Scripts that put no blanks between words (Chinese, Japanese, Thai and others) are folded to single characters, so a word
of theirs is found anywhere. Folding takes linear time for any text.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

LONGEST_CACHED = 32
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)) + bytes(range(128, 256))
_PIECE = re.compile(r'"([^"]*)"|([^\s"]+)')
# Thai and Lao, Myanmar, Khmer, kana, Han, and the Han of the supplementary planes.
_WITHOUT_BLANKS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x30FF), (0x31F0, 0x31FF)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
_OPERATORS = frozenset("{}|*")


class WordsRefused(Exception):
    """A text to search for is not understood. Has the problem and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


def words_of(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    return _with_blanks(text).split()


def folded(text: str) -> str:
    """The words of a text, each with a blank before and after it; blanks alone if there are none."""
    plain = _with_blanks(text)
    while "  " in plain:  # faster than splitting into words; each turn halves the longest row of blanks
        plain = plain.replace("  ", " ")
    return f" {plain.strip(' ')} "


def joined(words: Iterable[str]) -> str:
    """Folded words as a text in which phrases can be found."""
    return f" {' '.join(words)} "


def read_phrases(text: str) -> tuple[str, ...]:
    """The folded words and phrases in a text to search for, each once: `invoice "past due"`. All must be found.

    A word with other characters inside, such as `shop.example`, is a phrase. Raises WordsRefused for text meant as an
    operator, which would be searched for as a word.
    """
    if text.count('"') % 2:
        raise WordsRefused("has a quotation mark without its pair", "close the phrase, or leave the mark out")
    found: dict[str, None] = {}
    for phrase, word in _PIECE.findall(text):
        if word:
            _check_word(word)
        if words := words_of(phrase or word):
            found[joined(words)] = None
    if not found:
        raise WordsRefused("has no letter or digit", "give at least one word")
    return tuple(found)


def quoted_phrase(text: str) -> str:
    """A text to search for that means exactly these words, one after another."""
    return f'"{text.replace(chr(34), " ")}"'


def _with_blanks(text: str) -> str:
    """The folded words of a text, with one or more blanks between them."""
    if not text.isascii():
        text = " ".join([piece if piece.isascii() else _folded_piece(piece) for piece in text.split()])
    return text.encode("utf-8", "replace").translate(_ASCII).decode()


def _check_word(word: str) -> None:
    if word.startswith("-") and words_of(word):
        raise WordsRefused(f"has a minus before {word[1:41]!r}", "put that word under `not`, or in quotation marks")
    if word in ("OR", "AND"):
        raise WordsRefused(
            f"has the operator {word}", f"use `{word.lower()}` with a list, or put it in quotation marks"
        )
    if sign := next((each for each in word if each in _OPERATORS), None):
        raise WordsRefused(
            f"has a {sign!r}, which has no meaning here", "use `or` with a list, whole words, or quotation marks"
        )


def _folded_piece(piece: str) -> str:
    return _cached_piece(piece) if len(piece) <= LONGEST_CACHED else "".join(map(_folded_character, piece))


@lru_cache(20_000)
def _cached_piece(piece: str) -> str:
    return "".join(map(_folded_character, piece))


@lru_cache(10_000)
def _folded_character(character: str) -> str:
    """One character by itself: decomposing whole texts takes quadratic time where marks are heaped on a letter."""
    composed = unicodedata.normalize("NFKC", character)
    if len(composed) == 1 and _is_written_without_blanks(composed) and _is_of_words(composed):
        return f" {composed} "
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(each if _is_of_words(each) else " " for each in decomposed if not _is_dropped(each))


def _is_written_without_blanks(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _WITHOUT_BLANKS)


def _is_of_words(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


def _is_dropped(character: str) -> bool:
    """Accents, and invisible characters such as soft hyphens and joiners."""
    return unicodedata.combining(character) > 0 or unicodedata.category(character) == "Cf"
