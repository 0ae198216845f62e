"""The evidence for a category in a message: words of the subject, the sender and the text, each with a weight.

The work does not grow with the message: subject, sender and text are cut, and every step is linear.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from postroom.core.mail.category_words import (
    CONFIRMATION,
    FINANCE,
    HEALTH,
    PITCH,
    PLAIN,
    PROMOTION,
    STRONG,
    TRAVEL,
    UNSUBSCRIBE,
    WEAK,
    CategoryWords,
)

LONGEST_SUBJECT = 400
LONGEST_SENDER = 200
LONGEST_TEXT = 1_400
SHORTEST_COMPOUND = 9
STEM = 6
PROOF, STRONGLY, SHARED, PROMOTES, UNSUBSCRIBES = "proof", "strong", "shared", "promotion", "unsubscribe"
PITCHES = "pitch"
WORDS: Mapping[str, CategoryWords] = {"finance": FINANCE, "health": HEALTH, "travel": TRAVEL}

_WORD = re.compile(r"[a-z0-9]+")
_AMOUNT = re.compile(r"[$€£] ?\d|\d ?[€£$]|(?:EUR|USD|GBP|CHF) ?\d|\d ?(?:EUR|USD|GBP|CHF|[Ee]uro)")
_CURRENCIES = frozenset({"eur", "usd", "gbp", "chf", "euro"})


class EvidencePhrase(NamedTuple):
    """A phrase between blanks, the group it belongs to, and its weight."""

    text: str
    group: str
    weight: int


def terms(text: str) -> list[str]:
    """The phrases of a field of `CategoryWords`, each once."""
    return list(dict.fromkeys(phrase for each in text.split(",") if (phrase := " ".join(each.split()))))


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents and marks."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _WORD.findall(text.lower())


def _phrases() -> Iterator[EvidencePhrase]:
    for name, words in WORDS.items():
        yield from (EvidencePhrase(_between(term), f"{name} {PROOF}", 0) for term in terms(words.proof))
        yield from (
            EvidencePhrase(_between(term), f"{name} {STRONGLY}", 2) for term in terms(f"{words.proof}, {words.strong}")
        )
        weighted = ((words.proof, STRONG), (words.strong, STRONG), (words.plain, PLAIN), (words.weak, WEAK))
        for field, weight in weighted:
            yield from (EvidencePhrase(_between(term), _group(name, term), weight) for term in terms(field))
    yield from (EvidencePhrase(_between(term), PROOF, 0) for term in terms(CONFIRMATION))
    yield from (EvidencePhrase(_between(term), PROMOTES, 2) for term in terms(PROMOTION))
    yield from (EvidencePhrase(_between(term), PITCHES, 2) for term in terms(PITCH))
    yield from (EvidencePhrase(_between(term), UNSUBSCRIBES, 1) for term in terms(UNSUBSCRIBE))


def _group(name: str, term: str) -> str:
    words = WORDS[name]
    return f"{name} {SHARED}" if term in (*terms(words.shared), *terms(words.weak)) else name


def _between(term: str) -> str:
    return f" {' '.join(plain_words(term))} "


def _by_first_word(phrases: Iterable[EvidencePhrase]) -> dict[str, tuple[EvidencePhrase, ...]]:
    found: dict[str, list[EvidencePhrase]] = {}
    for phrase in phrases:
        found.setdefault(phrase.text.split()[0], []).append(phrase)
    return {word: tuple(each) for word, each in found.items()}


_PHRASES = _by_first_word(_phrases())
_FIRST_WORDS = frozenset(_PHRASES)
_ENDINGS = {name: tuple("".join(plain_words(term)) for term in terms(words.endings)) for name, words in WORDS.items()}
_STEMS = {stem: name for name, words in WORDS.items() for stem in terms(words.stems)}
_EVERY_ENDING = tuple(ending for endings in _ENDINGS.values() for ending in endings)
_SENDERS = {name: tuple(terms(words.senders)) for name, words in WORDS.items()}
_DOMAINS = {name: tuple(terms(words.domains)) for name, words in WORDS.items()}


class Found(NamedTuple):
    """The evidence in a subject or a text: the sum of the weights by group, and the phrases."""

    weights: Mapping[str, int]
    phrases: frozenset[str]

    def weight(self, name: str) -> int:
        """How much speaks for the category, without the words that it shares with others."""
        return self.weights.get(name, 0)

    def strong(self, name: str) -> int:
        """How many strong phrases of the category there are."""
        return self.weights.get(f"{name} {STRONGLY}", 0)

    def shared(self, name: str) -> int:
        return self.weights.get(f"{name} {SHARED}", 0)

    def proves(self, name: str) -> bool:
        """Whether there is a phrase found only in messages about the user's own affairs."""
        return PROOF in self.weights or f"{name} {PROOF}" in self.weights


NOTHING: frozenset[str] = frozenset()


def found_in_subject(subject: str) -> Found:
    return _evidence_in(subject[:LONGEST_SUBJECT], 0, NOTHING)


def found_in_text(text: str, subject: Found) -> Found:
    """The same for a text, in which every phrase weighs one less, and one that is in the subject nothing."""
    return _evidence_in(text[:LONGEST_TEXT], 1, subject.phrases)


def fits_sender(name: str, sender: str, domain: str) -> bool:
    """Whether the sender (name and address, in lower case) or its domain is one of the category."""
    return fits(name, sender) or _is_of(domain, _DOMAINS[name])


def fits(name: str, sender: str) -> bool:
    """Whether a name or address in lower case has a part that senders of the category use."""
    return any(part in sender for part in _SENDERS[name])


def _evidence_in(text: str, less: int, known: frozenset[str]) -> Found:
    words = plain_words(text)
    weights: dict[str, int] = {}
    phrases: set[str] = set()
    present = set(words)
    if ("$" in text or "€" in text or "£" in text or present & _CURRENCIES) and _AMOUNT.search(text):
        weights["finance"] = PLAIN - less
    if first := present & _FIRST_WORDS:
        joined = f" {' '.join(words)} "
        for word in first:
            for phrase, group, weight in _PHRASES[word]:
                if phrase in joined:
                    phrases.add(phrase)
                    weights[group] = weights.get(group, 0) + (max(weight - less, 0) if phrase not in known else 0)
    for word in present - _FIRST_WORDS:
        if word[:STEM] in _STEMS or (len(word) >= SHORTEST_COMPOUND and word.endswith(_EVERY_ENDING)):
            name = _group_of(word)
            phrases.add(word)
            weights[name] = weights.get(name, 0) + (PLAIN - less if word not in known else 0)
    return Found(weights, frozenset(phrases))


def _group_of(word: str) -> str:
    """The category that a word belongs to by how it begins, or else by how it ends."""
    name = _STEMS.get(word[:STEM])
    return name or next(name for name, endings in _ENDINGS.items() if word.endswith(endings))


def _is_of(domain: str, domains: tuple[str, ...]) -> bool:
    return domain.endswith(domains) and any(domain == each or domain.endswith(f".{each}") for each in domains)
