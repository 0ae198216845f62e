"""An interpreter of Gmail's filters, written from Gmail's help on search operators and filters, for tests.

It shares nothing with the importer. It reads a search by recursive descent over its characters and says at once
whether a message matches. A filter's fields are one search; all filters that match apply.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from email.message import EmailMessage
from email.utils import getaddresses

from support.foreign_rules.mailbox import State

ME = "mara@lindqvist.example"
PEOPLE = {"from": ("From",), "to": ("To", "Cc", "Bcc"), "cc": ("Cc",), "bcc": ("Bcc",), "replyto": ("Reply-To",)}
SIZES = {"s_sb": 1, "s_skb": 1024, "s_smb": 1024**2}


def apply_filters(filters: Iterable[Mapping[str, str]], message: EmailMessage) -> State:
    """The state of a new message after all filters that match."""
    found = [each for each in filters if matches_filter(each, message)]

    def says(name: str) -> bool:
        return any(each.get(name) == "true" for each in found)

    return State(
        frozenset(each["label"] for each in found if "label" in each),
        not (says("shouldArchive") or says("shouldTrash")),
        says("shouldTrash"),
        says("shouldMarkAsRead"),
        says("shouldStar"),
        frozenset(each["forwardTo"] for each in found if "forwardTo" in each),
    )


def matches_filter(given: Mapping[str, str], message: EmailMessage) -> bool:
    reader = Message(message)
    for name in ("from", "to", "subject"):
        if name in given and not Search(f"({given[name]})", reader, name).matches():
            return False
    if "hasTheWord" in given and not Search(given["hasTheWord"], reader).matches():
        return False
    if "doesNotHaveTheWord" in given and Search("{" + given["doesNotHaveTheWord"] + "}", reader).matches():
        return False
    if "hasAttachment" in given and not reader.attachments:
        return False
    if "size" in given:
        limit = int(given["size"]) * SIZES[given["sizeUnit"]]
        return reader.size > limit if given["sizeOperator"] == "s_sl" else reader.size < limit
    return True


class Message:
    """The parts of a message in which a search looks."""

    def __init__(self, message: EmailMessage) -> None:
        self.size = len(message.as_bytes())
        self.subject = [str(value) for value in message.get_all("Subject", [])]
        self.lists = [str(value) for value in message.get_all("List-Id", [])]
        self.delivered = [str(value) for value in message.get_all("Delivered-To", [])]
        self.attachments = [part.get_filename() or "" for part in message.iter_attachments()]
        body = message.get_body(("plain",))
        self.text = body.get_content() if body is not None else ""
        self.people = {
            operator: getaddresses([str(value) for name in names for value in message.get_all(name, [])])
            for operator, names in PEOPLE.items()
        }


class Search:
    """One search on one message. Every method reads on from where it is, and returns whether that part matches."""

    def __init__(self, text: str, message: Message, operator: str = "") -> None:
        self.text = text
        self.at = 0
        self.message = message
        self.operator = operator

    def matches(self) -> bool:
        return all(self.groups("", self.operator))

    def groups(self, end: str, operator: str) -> list[bool]:
        """Parts beside each other; those joined by OR count as one."""
        found: list[bool] = []
        joined = False
        while self.skip_blanks() and self.peek() != end:
            if self.take_word("OR"):
                joined = True
                continue
            part = self.part(operator)
            if joined:
                found[-1] = found[-1] or part
            else:
                found.append(part)
            joined = False
        self.at += len(end)
        return found

    def part(self, operator: str) -> bool:
        if self.take("-"):
            return not self.part(operator)
        if self.take("("):
            return all(self.groups(")", operator))
        if self.take("{"):
            return any(self.groups("}", operator))
        if self.take('"'):
            end = self.text.index('"', self.at)
            phrase = self.text[self.at : end]
            self.at = end + 1
            return self.leaf(operator, phrase)
        start = self.at
        while self.peek() and self.peek() not in ' (){}"':
            self.at += 1
            if self.text[self.at - 1] == ":" and self.text[start : self.at - 1] in OPERATORS:
                return self.part(self.text[start : self.at - 1])
        return self.leaf(operator, self.text[start : self.at])

    def leaf(self, operator: str, value: str) -> bool:
        return OPERATORS[operator](self.message, value)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def take_word(self, word: str) -> bool:
        follows = self.text[self.at + len(word) : self.at + len(word) + 1]
        return follows in ("", " ") and self.take(word)

    def skip_blanks(self) -> bool:
        while self.peek() == " ":
            self.at += 1
        return bool(self.peek())


def folded(text: str) -> list[str]:
    """The words of a text without case and accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return "".join(c if c.isalnum() else " " for c in plain).split()


def has_phrase(text: str, phrase: str) -> bool:
    words, wanted = folded(text), folded(phrase)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _people(operator: str) -> Callable[[Message, str], bool]:
    def found(message: Message, value: str) -> bool:
        people = message.people[operator]
        if value == "me":
            return any(address.lower() == ME for _, address in people)
        if "@" in value.lstrip("*@"):
            return any(address.lower() == value.lower() for _, address in people)
        return any(has_phrase(text, value) for person in people for text in person)

    return found


def _anywhere(message: Message, value: str) -> bool:
    people = [text for name in ("from", "to") for person in message.people[name] for text in person]
    return any(has_phrase(text, value) for text in (*message.subject, message.text, *people, *message.attachments))


def _bytes(value: str) -> int:
    return int(value.rstrip("KM")) * {"K": 1024, "M": 1024**2}.get(value[-1], 1)


OPERATORS: dict[str, Callable[[Message, str], bool]] = {
    "": _anywhere,
    **{name: _people(name) for name in PEOPLE},
    "subject": lambda message, value: any(has_phrase(each, value) for each in message.subject),
    "deliveredto": lambda message, value: any(each.lower() == value.lower() for each in message.delivered),
    "list": lambda message, value: any(has_phrase(each, value) for each in message.lists),
    "filename": lambda message, value: any(has_phrase(each, value) for each in message.attachments),
    "has": lambda message, value: bool(message.attachments),
    "larger": lambda message, value: message.size > _bytes(value),
    "smaller": lambda message, value: message.size < _bytes(value),
}
