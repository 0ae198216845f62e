"""Conditions on text: parts of words, whole words and phrases, patterns, and the language."""

from collections.abc import Callable

from postroom.core.mail.language import LANGUAGES, UNKNOWN
from postroom.core.rules import gmail_terms, sieve_terms
from postroom.core.rules.condition_spec import (
    ConditionSpec,
    FormField,
    GmailTerm,
    Need,
    needing,
    of_texts,
    says,
)
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Check, Test, one_of, pattern_in, text_of
from postroom.core.rules.words import WordsRefused, read_phrases


def _contains(slot: str, text: Callable[[Seen], str]) -> Callable[[str, object], Check]:
    def check(field: str, argument: object) -> Check:
        wanted = text_of(field, argument).casefold()
        return Check(lambda seen: wanted in text(seen), ((slot, wanted),))

    return check


def _subject_regex(field: str, argument: object) -> Check:
    pattern = pattern_in(field, argument)
    return Check(lambda seen: pattern.finds(seen.message.subject), (("pattern", pattern.text),), pattern)


def _language(field: str, argument: object) -> Check:
    wanted = one_of(field, argument, (*LANGUAGES, UNKNOWN))
    return Check(lambda seen: seen.language == wanted)


def _has_words(kind: str, fields: tuple[str, ...], *, in_one: bool) -> Callable[[str, object], Check]:
    def check(field: str, argument: object) -> Check:
        try:
            phrases = read_phrases(text_of(field, argument))
        except WordsRefused as refused:
            raise BrokenRule(field, refused.problem, refused.remedy) from None
        wanted = tuple((phrase, frozenset(phrase.split())) for phrase in phrases)
        test = _in_one(fields[0], phrases) if in_one else _in_any(fields, wanted)
        return Check(test, needs=tuple((kind, phrase) for phrase in phrases))

    return check


# Plain loops: these tests are among the innermost.
def _in_any(fields: tuple[str, ...], wanted: tuple[tuple[str, frozenset[str]], ...]) -> Test:
    """Test whether every phrase, here with its words, is in one of the fields."""

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
    """Test whether one text of the field, such as a name, has all phrases."""
    return lambda seen: any(all(phrase in text for phrase in phrases) for text in seen.folded[field].texts)


@of_texts
def contains_more(one: str, other: str) -> bool:
    """Whatever contains the longer text contains the shorter one."""
    return other.casefold() in one.casefold()


@of_texts
def _has_more_words(one: str, other: str) -> bool:
    return _phrases(other) <= _phrases(one) != frozenset()


def _phrases(text: str) -> frozenset[str]:
    try:
        return frozenset(read_phrases(text))
    except WordsRefused:
        return frozenset()


def _always(what: str) -> Callable[[object, Seen], str]:
    return lambda _, seen: what


_NOT_IN_SUBJECT = _always("it is not in the subject")
_NOT_IN_TEXT = _always("it is not in the text")
_NO_SUCH_PERSON = _always("no name or address there has it")


def words_condition(
    kind: str,
    fields: tuple[str, ...],
    meaning: str,
    clause: str,
    observed: Callable[[object, Seen], str],
    needs: frozenset[Need],
    gmail: GmailTerm | None = None,
    form: FormField | None = None,
    *,
    example: str,
    in_one: bool = False,
) -> ConditionSpec:
    """The condition on words: all must be in these fields, each in any of them; with `in_one`, all in the same name."""
    return ConditionSpec(
        kind,
        _has_words(kind, fields, in_one=in_one),
        meaning=meaning,
        example=example,
        says=says(clause),
        observed=observed,
        needs=needs,
        implies={} if in_one else {kind: _has_more_words},
        gmail=gmail,
        form=form,
        words_in=fields,
    )


def _words_about(field: str, where: str, clause: str, operator: str, form: FormField | None = None) -> ConditionSpec:
    """The condition on words in the names and addresses of people, a field of `ADDRESS_HEADERS`."""
    return words_condition(
        f"{field}_words",
        (field,),
        f"the names and addresses in {where} have all these words",
        clause,
        _NO_SUCH_PERSON,
        needing("headers"),
        gmail_terms.words_about(operator),
        form,
        example="shop",
    )


def _name(field: str, where: str, clause: str) -> ConditionSpec:
    return words_condition(
        f"{field}_name",
        (f"{field}_name",),
        f"a display name in {where} has all these words",
        clause,
        _NO_SUCH_PERSON,
        needing("headers"),
        example="Ida Holm",
        in_one=True,
    )


SPECS = (
    ConditionSpec(
        "subject_contains",
        _contains("subject", lambda seen: seen.subject),
        meaning="the subject contains this, also within a word",
        example="invoice",
        says=says("the subject contains “{}”"),
        observed=_NOT_IN_SUBJECT,
        implies={"subject_contains": contains_more},
        gmail=gmail_terms.parts_of_words("subject_contains", "subject_words"),
        sieve=sieve_terms.header_contains("subject"),
        form=FormField("Subject contains", "invoice", 60),
    ),
    ConditionSpec(
        "subject_regex",
        _subject_regex,
        meaning="the pattern matches somewhere in the subject",
        example="invoice [0-9]+",
        says=says("the subject matches the pattern {}"),
        observed=_NOT_IN_SUBJECT,
        sieve=sieve_terms.header_pattern("subject"),
        form=FormField("Subject matches the pattern", r"invoice \d+", 70),
    ),
    ConditionSpec(
        "body_contains",
        _contains("body", lambda seen: seen.body),
        meaning="the text contains this, also within a word",
        example="invoice",
        says=says("the text contains “{}”"),
        observed=_NOT_IN_TEXT,
        needs=needing("text"),
        implies={"body_contains": contains_more},
        gmail=gmail_terms.parts_of_words("body_contains", "body_words"),
        sieve=sieve_terms.text_contains,
    ),
    words_condition(
        "words",
        ("body", "subject", "from", "to", "bcc", "attachments"),
        "all these words and phrases are somewhere in the subject, the text, the names and addresses in `From`, `To`, "
        "`Cc` and `Bcc`, or the names of attachments",
        "it has the words “{}”",
        _always("they are not all in its subject, text, people or names of attachments"),
        needing("text", "attachments"),
        gmail_terms.words("words", ""),
        FormField("Has the words anywhere", "timetable", 80),
        example='invoice "past due"',
    ),
    words_condition(
        "subject_words",
        ("subject",),
        "all these words are in the subject",
        "the subject has the words “{}”",
        _NOT_IN_SUBJECT,
        needing(),
        gmail_terms.words("subject_words", "subject"),
        FormField("Subject has the words", 'invoice "past due"', 50),
        example='invoice "past due"',
    ),
    words_condition(
        "body_words",
        ("body",),
        "all these words are in the text",
        "the text has the words “{}”",
        _NOT_IN_TEXT,
        needing("text"),
        form=FormField("Text has the words", "unsubscribe", 90),
        example="unsubscribe",
    ),
    _words_about("from", "`From`", "From has “{}”", "from", FormField("From has the words", "shop", 20)),
    _words_about("to", "`To` and `Cc`", "To or Cc has “{}”", "to", FormField("To or Cc has the words", "team", 40)),
    _words_about("cc", "`Cc`", "Cc has “{}”", "cc"),
    _words_about("bcc", "`Bcc`", "Bcc has “{}”", "bcc"),
    _words_about("reply_to", "`Reply-To`", "Reply-To has “{}”", "replyto"),
    _name("from", "`From`", "the sender's name has “{}”"),
    _name("to", "`To` or `Cc`", "a recipient's name has “{}”"),
    ConditionSpec(
        "language",
        _language,
        meaning="the text is in this [language](#language)",
        example="de",
        says=says("its language is {}"),
        observed=lambda _, seen: f"the language of its text is {seen.language}",
        needs=needing("text"),
        form=FormField("Language", "de", 240),
        is_slow=True,
    ),
)
