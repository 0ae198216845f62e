"""Conditions on text: parts of words, whole words and phrases, patterns, and the language."""

from collections.abc import Mapping

from postroom.core.mail.language import LANGUAGES, UNKNOWN
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import (
    BrokenRule,
    Leaf,
    Read,
    Test,
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
        wanted = tuple((phrase, frozenset(phrase.split())) for phrase in phrases)
        test = _in_one(WORD_FIELDS[kind][0], phrases) if kind in IN_ONE else _in_any(WORD_FIELDS[kind], wanted)
        return Leaf(kind, argument, test, needs=tuple((kind, phrase) for phrase in phrases))

    return read


# Plain loops: these tests are among the innermost.
def _in_any(fields: tuple[str, ...], wanted: tuple[tuple[str, frozenset[str]], ...]) -> Test:
    """Tests whether every phrase, here with its words, is in one of the fields."""

    def test(seen: Seen) -> bool:
        folded = seen.folded
        for phrase, words in wanted:
            for field in fields:
                if folded[field].has(phrase, words):
                    break
            else:
                return False
        return True

    return test


def _in_one(field: str, phrases: tuple[str, ...]) -> Test:
    """Tests whether one text of the field, such as a name, has all phrases."""
    return lambda seen: any(all(phrase in text for phrase in phrases) for text in seen.folded[field].texts)


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
