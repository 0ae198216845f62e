"""Whole words and phrases, found in the plainest way: lists of words, compared one place after another.

core/rules/words.py is compared with this, which takes nothing from it. Kana and marks that are letters of their own are
not among the texts that are compared.
"""

import unicodedata


def naive_words(text: str) -> list[str]:
    """The words of a text, without case and accents; every Han character is a word."""
    words = [""]
    for character in _plain(text):
        if unicodedata.name(character, "").startswith("CJK UNIFIED"):
            words += [character, ""]
        elif character.isalnum():
            words[-1] += character
        else:
            words.append("")
    return [word for word in words if word]


def _plain(text: str) -> str:
    for _ in range(2):
        text = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(each for each in text if not unicodedata.combining(each) and unicodedata.category(each) != "Cf")
    return text


def naive_phrases(wanted: str) -> list[list[str]]:
    """What is between quotation marks is one phrase; of the rest, whatever has no blank in it."""
    phrases: list[list[str]] = []
    for number, piece in enumerate(wanted.split('"')):
        phrases += [naive_words(piece)] if number % 2 else [naive_words(word) for word in piece.split()]
    return [phrase for phrase in phrases if phrase]


def has_phrases(wanted: str, texts: list[str]) -> bool:
    """Whether every phrase is in one of the texts."""
    return all(any(_has(naive_words(text), phrase) for text in texts) for phrase in naive_phrases(wanted))


def _has(words: list[str], phrase: list[str]) -> bool:
    return any(words[at : at + len(phrase)] == phrase for at in range(len(words)))
