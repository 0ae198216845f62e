"""Conditions on text: parts of words, whole words and phrases, patterns, and the language."""

from collections.abc import Mapping

from postroom.core.mail.language import LANGUAGES, UNKNOWN
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import (
    BrokenRule,
    Leaf,
    Read,
    one_of,
    pattern_in,
    text_of,
)
from postroom.core.rules.words import WordsRefused, read_phrases

# The fields in which each condition looks for words. All words must be there, each in any of the fields.
WORD_FIELDS: Mapping[str, tuple[str, ...]] = {
    "words": ("body", "subject", "from", "to", "bcc", "attachments"),
    "subject_words": ("subject",),
    "body_words": ("body",),
    "from_words": ("from",),
    "to_words": ("to",),
    "cc_words": ("cc",),
    "bcc_words": ("bcc",),
    "reply_to_words": ("reply_to",),
    "list_words": ("list",),
    "from_name": ("from_name",),
    "to_name": ("to_name",),
    "attachment_name": ("attachments",),
}
# All words must be in the same name.
IN_ONE = frozenset({"from_name", "to_name", "attachment_name"})


def _words(kind: str) -> Read:
    def read(field: str, argument: object) -> Leaf:
        try:
            phrases = read_phrases(text_of(field, argument))
        except WordsRefused as refused:
            raise BrokenRule(field, refused.problem, refused.remedy) from None
        needed = frozenset(word for phrase in phrases for word in phrase.split())
        several = tuple((phrase, frozenset(phrase.split())) for phrase in phrases if phrase.count(" ") > 2)
        fields = WORD_FIELDS[kind]

        def test(seen: Seen) -> bool:
            if not _has_words(seen, fields, needed):  # mostly, and before texts are put together for phrases
                return False
            return _in_one(seen, fields[0], phrases) if kind in IN_ONE else _in_any(seen, fields, several)

        return Leaf(kind, argument, test, needs=tuple((kind, word) for word in sorted(needed)))

    return read


def _has_words(seen: Seen, fields: tuple[str, ...], needed: frozenset[str]) -> bool:
    """Whether every word is in one of the fields."""
    for field in fields:
        words = seen.words[field]
        if needed <= words:
            return True
        needed = needed - words
    return False


def _in_any(seen: Seen, fields: tuple[str, ...], phrases: tuple[tuple[str, frozenset[str]], ...]) -> bool:
    """Whether every phrase, here with its words, is in one of the fields."""
    return all(_is_in_any(seen, fields, phrase, words) for phrase, words in phrases)


def _is_in_any(seen: Seen, fields: tuple[str, ...], phrase: str, words: frozenset[str]) -> bool:
    return any(words <= seen.words[field] and any(phrase in text for text in seen.texts[field]) for field in fields)


def _in_one(seen: Seen, field: str, phrases: tuple[str, ...]) -> bool:
    """Whether one text of the field, such as a name, has all phrases."""
    return any(all(phrase in text for phrase in phrases) for text in seen.texts[field])


def _subject_contains(field: str, argument: object) -> Leaf:
    wanted = text_of(field, argument).casefold()
    return Leaf("subject_contains", argument, lambda seen: wanted in seen.subject, (("subject", wanted),))


def _body_contains(field: str, argument: object) -> Leaf:
    wanted = text_of(field, argument).casefold()
    return Leaf("body_contains", argument, lambda seen: wanted in seen.body, (("body", wanted),))


def _subject_regex(field: str, argument: object) -> Leaf:
    pattern = pattern_in(field, argument)
    keys = (("pattern", pattern.text),)
    return Leaf("subject_regex", argument, lambda seen: pattern.finds(seen.message.subject), keys, pattern)


def _language(field: str, argument: object) -> Leaf:
    wanted = one_of(field, argument, (*LANGUAGES, UNKNOWN))
    return Leaf("language", argument, lambda seen: seen.language == wanted)


LEAVES: Mapping[str, Read] = {
    "subject_contains": _subject_contains,
    "subject_regex": _subject_regex,
    "body_contains": _body_contains,
    **{kind: _words(kind) for kind in WORD_FIELDS},
    "language": _language,
}
