"""How single conditions are said in Gmail's search, in both directions, with the same meaning or not at all.

A word is found as a whole word, in any case and with any accents. An address is exactly that address; a domain is a
phrase, so `shop.example` is found in `mail.shop.example`. These are the findings in
docs/decisions/0081-gmail-as-observed.md.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Never

from postroom.core.mail.addresses import canonical
from postroom.core.rules.condition_spec import GmailTerm, Inexpressible
from postroom.core.rules.logic import Condition, Logic, some
from postroom.core.rules.words import quoted_phrase, words_of

# The people of whom `me` can be asked.
PEOPLE = frozenset({"from", "to", "cc", "bcc"})
NO_SUCH = "has no counterpart among conditions"
SYSTEM_LABELS = {
    "inbox": "INBOX",
    "spam": "SPAM",
    "trash": "TRASH",
    "sent": "SENT",
    "starred": "STARRED",
    "unread": "UNREAD",
    "important": "IMPORTANT",
}
CATEGORIES = {"primary": "personal", **{name: name for name in ("promotions", "social", "updates", "forums")}}
IN_THE_OWN_ZONE = "Gmail counts days in the mailbox's own time zone; write seconds since 1970"
SEVERAL_LABELS = "Gmail writes blanks and slashes in labels as hyphens, so this may be one of several labels"
_AGE = re.compile(r"([1-9]\d{0,3})([hd])")
_SIZE = re.compile(r"[1-9]\d{0,11}[kmg]?b?", re.IGNORECASE)
_SECONDS = re.compile(r"\d{9,11}")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_PIECES = re.compile(r'"[^"]*"|[^\s"]+')


def is_address(text: str) -> bool:
    return "*" not in text and text.count("@") == 1 and canonical(text) is not None


def bare(text: str) -> str:
    """The text as the value of an operator, without quotes."""
    if re.search(r'[\s(){}":|*,;]', text) or text.lower() == "me":
        raise Inexpressible(f"{text!r} cannot be used in a search")
    return text


def word_condition(kind: str, text: str) -> Condition:
    """A word, or the words of a text one after another."""
    if not words_of(text):
        raise Inexpressible(f"{text[:40]!r} has no letter or digit to search for")
    if "*" in text:
        raise Inexpressible(f"{text[:40]!r} has a star, which Gmail does not explain")
    return {kind: text if _PLAIN_WORD.fullmatch(text) and text not in ("OR", "AND") else quoted_phrase(text)}


def word_search(operator: str, argument: str) -> str:
    """Words and phrases as `words` and its like write them: all must be found."""
    pieces = [each if each.startswith('"') else f'"{each}"' for each in _PIECES.findall(argument)]
    pieces = [f"{operator}{each}" for each in pieces if words_of(each)]
    if not pieces or "*" in argument:
        raise Inexpressible("a search has no stars, and at least one word")
    return pieces[0] if len(pieces) == 1 else f"({' '.join(pieces)})"


def words(kind: str, operator: str) -> GmailTerm:
    """Words in one place; without an operator, in any."""
    before = f"{operator}:" if operator else ""
    return GmailTerm(
        lambda argument: word_search(before, argument),
        {operator: lambda text: word_condition(kind, text)},
        of_words=True,
    )


def words_about(operator: str) -> GmailTerm:
    """Words about people. `people` reads them, where they are no address."""
    return GmailTerm(lambda argument: word_search(f"{operator}:", argument))


def words_in_one_name(kind: str, operator: str) -> GmailTerm:
    def write(argument: str) -> str:
        if len(_PIECES.findall(argument)) != 1:
            raise Inexpressible("a search cannot ask for several words in one attachment's name")
        return word_search(f"{operator}:", argument)

    return GmailTerm(write, {operator: lambda text: word_condition(kind, text)}, of_words=True)


def parts_of_words(kind: str, instead: str) -> GmailTerm:
    def write(_: object) -> Never:
        raise Inexpressible(f"a search finds whole words only, not {kind}; use {instead}")

    return GmailTerm(write)


def sender(before: str = "") -> GmailTerm:
    """The one sender, which Gmail does not tell from others in From. `people` reads it."""
    return GmailTerm(lambda argument: f"from:{bare(f'{before}{argument}')}")


def people(kind: str, operator: str) -> GmailTerm:
    """People by address, by domain, by a word in their name or address, or `me`."""
    return GmailTerm(_address_search(operator), {operator: _person(kind)}, of_words=True)


def recipients() -> GmailTerm:
    """As `people`, for `to:`, which counts Cc and Bcc."""

    def read(text: str) -> Logic:
        found = _person("to")(text)
        if isinstance(found, bool):
            return found
        ((kind, argument),) = found.items()
        return some([found, {kind.replace("to", "bcc", 1): argument}])

    return GmailTerm(_address_search("to"), {"to": read}, of_words=True)


def address(kind: str, operator: str) -> GmailTerm:
    """People by address only."""

    def read(text: str) -> Logic:
        if not is_address(text):
            raise Inexpressible(f"{operator}: with something else than an address {NO_SUCH}")
        return {kind: text}

    return GmailTerm(_address_search(operator), {operator: read})


def _address_search(operator: str) -> Callable[[str], str]:
    return lambda argument: f"{operator}:{bare(argument)}"


def _person(kind: str) -> Callable[[str], Logic]:
    def read(text: str) -> Logic:
        if text.lower() == "me":
            if kind not in PEOPLE:
                raise Inexpressible(f"{kind}:me {NO_SUCH}")
            return {f"{kind}_me": True}
        if "," in text or ";" in text:
            raise Inexpressible("it lists addresses with commas, which Gmail does not explain; put OR between them")
        if is_address(text):
            return {kind: text}
        return word_condition(f"{kind}_words", text.removeprefix("*").removeprefix("@"))

    return read


def whether(text: str) -> GmailTerm:
    """Something that is so or not. It is read where the part before the colon is."""
    return GmailTerm(_yes_or_no(text))


def _yes_or_no(text: str) -> Callable[[bool], str]:
    return lambda wanted: text if wanted else f"-{text}"


def has_attachment() -> GmailTerm:
    def read(text: str) -> Logic:
        if text.lower() != "attachment":
            raise Inexpressible(f"has:{text[:40]} {NO_SUCH}")
        return {"has_attachment": True}

    return GmailTerm(_yes_or_no("has:attachment"), {"has": read})


def label() -> GmailTerm:
    """Labels of one's own, and those that Gmail names as places and states."""

    def write(argument: str) -> str:
        if "-" in argument:
            raise Inexpressible(SEVERAL_LABELS)
        if '"' in argument or argument != argument.strip():
            raise Inexpressible("a search has no quotes, or blanks at its ends, inside quotes")
        return f'label:"{argument}"'

    def read(text: str) -> Logic:
        if "-" in text:
            raise Inexpressible(SEVERAL_LABELS)
        return {"label_present": text}

    return GmailTerm(write, {"in": _place, "is": _place, "label": read})


def _place(text: str) -> Logic:
    match text.lower():
        case "anywhere":
            return True
        case "read":
            return {"not": {"label_present": "UNREAD"}}
        case name if name in SYSTEM_LABELS:
            return {"label_present": SYSTEM_LABELS[name]}
        case _:
            raise Inexpressible(f"in:{text[:40]} or is:{text[:40]} {NO_SUCH}")


def category() -> GmailTerm:
    names = {own: gmail for gmail, own in CATEGORIES.items()}

    def write(argument: str) -> str:
        if argument.strip().lower() not in names:
            raise Inexpressible(f"the category {argument!r} is not one of Gmail's")
        return f"category:{names[argument.strip().lower()]}"

    def read(text: str) -> Logic:
        if text.lower() not in CATEGORIES:
            raise Inexpressible(f"category:{text[:40]} {NO_SUCH}")
        return {"category": CATEGORIES[text.lower()]}

    return GmailTerm(write, {"category": read})


def age(kind: str) -> GmailTerm:
    def write(argument: str) -> str:
        if argument.endswith("h"):
            raise Inexpressible(f"a search cannot say {kind} in hours")
        days = int(argument[:-1]) * (7 if argument.endswith("w") else 1)
        if days > 9_999:
            raise Inexpressible(f"a search cannot say {kind} with so many days")
        return f"{kind}:{days}d"

    def read(text: str) -> Logic:
        found = _AGE.fullmatch(text.lower())
        if found is None:
            raise Inexpressible(f"{text[:40]!r} is not an age in hours or days; months and years differ in length")
        return {kind: found.group()}

    return GmailTerm(write, {kind: read})


def moment(kind: str, *operators: str) -> GmailTerm:
    """A moment is read as seconds since 1970, and not written: Gmail counts days in the mailbox's own time zone."""

    def read(text: str) -> Logic:
        if not _SECONDS.fullmatch(text):
            raise Inexpressible(IN_THE_OWN_ZONE)
        return {kind: datetime.fromtimestamp(int(text), UTC).isoformat()}

    return GmailTerm(None, dict.fromkeys(operators, read))


def size(kind: str, *operators: str) -> GmailTerm:
    def read(text: str) -> Logic:
        if not _SIZE.fullmatch(text):
            raise Inexpressible(f"{text[:40]!r} is not a size")
        return {kind: text.upper().removesuffix("B")}

    return GmailTerm(
        lambda argument: f"{kind}:{bare(str(argument).replace(' ', ''))}", dict.fromkeys((kind, *operators), read)
    )


def message_id() -> GmailTerm:
    """Of all headers, a search knows the one that identifies the message."""

    def read(text: str) -> Logic:
        name = "".join(f"\\{each}" if each in r"\.+*?()|[]{}^$" else each for each in text.strip("<>"))
        return {"header_match": {"name": "message-id", "pattern": f"^<?{name}>?$"}}

    return GmailTerm(None, {"rfc822msgid": read})
