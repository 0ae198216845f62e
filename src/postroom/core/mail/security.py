"""Whether a message is about the safety of an account: a sign-in, a password, a code, a recovery, a fraud warning.

Such mail may be forged, and its claims are not checked here: the owner should see it either way. So one false notice is
better than a missed one. The work is linear in a text that is cut.
"""

import re
from collections.abc import Iterator

from postroom.core.mail.evidence import LONGEST_SUBJECT, plain_words, terms
from postroom.core.mail.security_words import ENGLISH, GERMAN, OTHER_CODES, OTHERS, STEMS, SUBJECT_STEMS

# As much of a mail as a language model is shown: the check covers all that the model acts on.
LONGEST_TEXT = 8_000
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_NUMBER = r"(?:\d{4,8}|\d{3}[ -]\d{3}|[a-z]-\d{4,8})(?!\w)"
_IS = r"(?:is|ist|lautet|est|es|è)"
_NUMBER_FIRST = re.compile(rf"(?<![\w-]){_NUMBER} {_IS} (?:your|the|ihr|ihre|dein|deine|votre|tu|su|il tuo)(?!\w)")
_CODE_FIRST = re.compile(
    rf"(?<!\w)((?:[\w-]{{1,20}} ){{0,3}})(?:code|kode|pin|tan|otp|código|codice)(?:[\s:*=]|{_IS}(?!\w)){{1,8}}{_NUMBER}"
)
_OTHER_CODES = frozenset(terms(OTHER_CODES))


def is_security_notice(subject: str, text: str) -> bool:
    """Whether the subject or the text is one of a notice about the safety of an account."""
    words = plain_words(subject[:LONGEST_SUBJECT])
    if any(word.startswith(_SUBJECT_STEMS) for word in words):
        return True
    return _tells(subject[:LONGEST_SUBJECT], words) or _tells(text[:LONGEST_TEXT], plain_words(text[:LONGEST_TEXT]))


def _tells(text: str, words: list[str]) -> bool:
    joined = f" {' '.join(words)} "
    if any(phrase in joined for phrase in _PHRASES) or any(word.startswith(_STEMS) for word in words):
        return True
    return _has_code(text.lower())


def _has_code(text: str) -> bool:
    """Whether a code is sent, such as `482 913 is your Acme code` or `PIN: 4821`; not the code of a discount."""
    if _NUMBER_FIRST.search(text):
        return True
    return any(_OTHER_CODES.isdisjoint(found[1].split()) for found in _CODE_FIRST.finditer(text))


def _spellings(text: str) -> Iterator[str]:
    """The terms as `plain_words` writes them, with umlauts as one letter and as two."""
    for term in terms(text):
        yield from {" ".join(plain_words(spelled)) for spelled in (term, term.translate(_UMLAUTS))}


_PHRASES = tuple(f" {phrase} " for words in (ENGLISH, GERMAN, OTHERS) for phrase in _spellings(words))
_STEMS = tuple(_spellings(STEMS))
_SUBJECT_STEMS = tuple(_spellings(SUBJECT_STEMS))
