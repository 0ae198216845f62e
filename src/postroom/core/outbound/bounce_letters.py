"""Reads bounces that are letters: Exim, qmail, Gmail, Exchange, Postfix and Sendmail have written for people alone.

    This message was created automatically by mail delivery software.        an opening that says that it failed
    The following address(es) failed:
      ada@example.org                                                         a recipient begins its line
        host mx.example.org [192.0.2.1]: 550 5.1.1 User unknown               the reply, after a mark or at the start
    ------ This is a copy of the message, including all the headers. ------   from here on it is the original

A letter says less than a report, and anybody can write one. It counts under the same conditions (`report_origins.py`),
and only for a recipient and a Message-ID of a mail that we sent.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from postroom.core.mail.addresses import addresses, canonical
from postroom.core.mail.headers import Headers, values
from postroom.core.outbound.replies import Phase, Reply, reply_of

LONGEST_LETTER = 65_536
MOST_LETTER_RECIPIENTS = 100
LONGEST_SECTION = 4_000

MAIL_SYSTEMS = re.compile(r"mailer-daemon|mail-daemon|maildaemon|postmaster|microsoftexchange[0-9a-f]{32}")


class LetterRecipient(NamedTuple):
    """A recipient that a letter names, and the reply that it quotes for it. `failed` is not for mere delay."""

    address: str
    failed: bool
    reply: Reply


class Letter(NamedTuple):
    """The letter up to the original, and the head of the original if it follows as text."""

    text: str
    original: str


def is_by_mail_system(headers: Headers) -> bool:
    """Whether a message says that a mail system wrote it, by the address of its author. Letters of others never count,
    but for a person who vouches for them.
    """
    authors = [each for value in values(headers, "from") for each in addresses(value)]
    return any(MAIL_SYSTEMS.fullmatch(each.rpartition("@")[0].lower()) for each in authors)


def may_be_letter(headers: Headers) -> bool:
    """Whether a message looks like one of a mail system, in whatever way."""
    authors = " ".join(values(headers, "from")).lower()
    empty_path = [value.strip() for value in values(headers, "return-path")[:1]] == ["<>"]
    return _SYSTEM_NAMES.search(authors) is not None or empty_path or bool(values(headers, "x-failed-recipients"))


def divided(text: str) -> Letter:
    """The letter, and the rest, which is the original."""
    text = text.replace("\r\n", "\n")
    found = _ORIGINAL.search(text)
    at = found.start() if found else len(text)
    return Letter(text[: min(at, LONGEST_LETTER)], text[at : at + LONGEST_LETTER])


def read_letter(headers: Headers, letter: str) -> list[LetterRecipient]:
    """The recipients of whom the letter says that they were not reached (yet); none if it says nothing of the kind."""
    said = " ".join([*values(headers, "subject")[:1], letter])
    if not _FAILURE.search(said):
        return []
    failed = _DELAY.search(said) is None or _FINAL.search(said) is not None
    sections = list(_sections(letter, _named_in)) or list(_sections(letter, _mentioned_in))
    for value in values(headers, "x-failed-recipients")[:1]:
        known = {address for address, _ in sections}
        sections += [(each, letter) for each in addresses(value)[:MOST_LETTER_RECIPIENTS] if each not in known]
    # The rest of the letter is about this recipient only if there is no other.
    texts = {text for _, text in sections}
    common = letter if len(texts) == 1 else ""
    replies = {text: _reply(text, common) for text in texts}
    return [LetterRecipient(address, failed, replies[text]) for address, text in sections]


def phase_of(text: str) -> Phase:
    """The command that a quoted reply answered, as far as its reporter says so; RCPT otherwise."""
    for phase, pattern in _PHASES:
        if pattern.search(text):
            return phase
    return "rcpt"


def _sections(letter: str, named_in: Callable[[str], Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Each address, once, with the lines about it: those up to the next other address."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in letter.split("\n"):
        for address in named_in(line):
            if address not in found and len(found) >= MOST_LETTER_RECIPIENTS:
                continue
            current = found.setdefault(address, current if _ALIAS.search(line) else [])
        current.append(line)
    for address, lines in found.items():
        yield address, "\n".join(lines)[:LONGEST_SECTION]


def _named_in(line: str) -> Sequence[str]:
    """The recipients that a line is about."""
    found = [match for pattern in (_AT_START, _ALIAS, _IN_SENTENCE) for match in pattern.finditer(line[:1000])]
    return [address for match in found if (address := canonical(match[1])) is not None]


def _mentioned_in(line: str) -> Sequence[str]:
    """All addresses in a line. Whether one is a recipient, is known where the mail is."""
    return [address for match in _MENTIONED.finditer(line[:1000]) if (address := canonical(match[1])) is not None]


def _reply(section: str, letter: str) -> Reply:
    """The reply in the lines about a recipient, or else in the letter; without any, their words."""
    for text in (section, letter):
        if found := _REPLY.search(text):
            quoted = _PARAGRAPH.split(text[found.start(1) :], maxsplit=1)[0]
            code, rest = int(found[1]), quoted[3:].lstrip(" -")
            return reply_of(code, [_AGAIN.sub(" ", rest).encode()], _host(text), phase_of(text))
    words = " ".join(section.split())
    status = _STATUS.search(section) or _STATUS.search(letter)
    enhanced = status[1] if status else "5.0.0"
    said = reply_of(int(enhanced[0]) * 100, [words.encode()], _host(section), phase_of(section))
    return said._replace(code=None, enhanced=enhanced)


def _host(text: str) -> str | None:
    found = _HOST.search(text)
    return None if found is None else found[1].rstrip(".")[:255]


_ADDRESS = r"([^\s<>()\[\]@,;:\"']{1,64}@(?:[\w-]{1,63}\.){1,10}[\w-]{1,63})"
_AT_START = re.compile(rf"^[\s>*\"'-]*<?{_ADDRESS}>?\"?(?=\s*$|\s*:|\.\.\.|\s*[<(]|,? on \d|\s*;)")
_MENTIONED = re.compile(_ADDRESS)
_ALIAS = re.compile(rf"(?:generated|expanded) from:? <?{_ADDRESS}", re.IGNORECASE)
_IN_SENTENCE = re.compile(
    rf"(?:deliver\w*|reach\w*|message|mail|RCPT) to:? ?<?{_ADDRESS}>?",
    re.IGNORECASE,
)

_ORIGINAL = re.compile(
    r"^[ \t>]*(?:-{2,}[ \t]*)?(?:this is a copy of (?:the|your) message|below this line is (?:a copy|the)|"
    r"enclosed (?:are|is) (?:the original|a copy)|original message(?: headers?| follows)?\b|unsent message follows|"
    r"message headers? follows?|returned message(?: follows)?\b|the original message (?:follows|is attached)|"
    r"headers of (?:the|your) original|(?:your |the )?message (?:is|was) returned below).*$"
    r"|^(?:return-path|received|x-received|dkim-signature|message-id|x-postroom-delivery):[ \t]",
    re.IGNORECASE | re.MULTILINE,
)
# Letters are hostile: the characters between two words, and at their ends, are limited, or long runs take minutes.
_FAILURE = re.compile(
    r"(?:could ?n[o']t|could not|cannot|can't|was ?n[o']t|was not|not be|unable to|not been|did not|has not)[\s>]+"
    r"(?:\w+[\s>]+){0,4}?(?:deliver|reach|sent|process)|undeliver|returned mail|returning message|not delivered|delay"
    r"|(?:deliver\w{0,10}|message|address\S{0,10}|recipient\S{0,10})[\s>]+(?:\w+[\s>]+){0,5}?fail|failure notice"
    r"|non-?delivery"
    r"|permanent(?:ly)?[\s>]+(?:fatal[\s>]+)?(?:error|fail)|delivery (?:status|failure|problem)",
    re.IGNORECASE,
)
_DELAY = re.compile(
    r"delayed|not yet been delivered|will (?:be|keep|continue|go on|try)[^.\n]{0,40}(?:retr|try|attempt)"
    r"|still (?:being|trying|undelivered)|warning message only|delivery (?:is )?incomplete"
    r"|temporary problem delivering|no action is required",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"permanent|given up|giving up|returning message|retry (?:timeout|time not|limit)|message expired"
    r"|could not be delivered for more than",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"(?:(?:said|says|was|reason|returned|response|error|smtp|remote|<<<|diagnostic[- ]code|status)[:;>]*|[:;#(]|^)"
    r"[\s>]{0,100}([45]\d\d)(?=[ -]+\S)(?! (?:seconds|minutes|hours|days|bytes|recipients|messages))",
    re.IGNORECASE | re.MULTILINE,
)
_AGAIN = re.compile(r"\s+(?:[45]\d\d-(?:[45]\.\d{1,3}\.\d{1,3})?)?\s*")
_PARAGRAPH = re.compile(r"\n[ \t>]*\n|\n[ \t]*giving up on ", re.IGNORECASE)
_STATUS = re.compile(r"(?<![\d.])#?([45]\.\d{1,3}\.\d{1,3})(?![\d.])")
_HOST = re.compile(
    r"(?:host|talking to|recipient domain \S+ by|connected to|by server:?|generating server:?)"
    r"\s+((?:[\w-]{1,63}\.){1,10}[\w-]{1,63})",
    re.IGNORECASE,
)
_PHASES: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    (
        "content",
        re.compile(r"(?:after|reply to|response to)[\s>]+(?:the |end of |sending )?data|>>> (?:data|\.)\s", re.I),
    ),
    ("mail", re.compile(r"(?:after|reply to|response to)[\s>]+(?:sender )?mail from|>>> mail from", re.I)),
    ("greeting", re.compile(r"after initial connection|(?:after|reply to|performing the) (?:ehlo|helo)", re.I)),
)
_SYSTEM_NAMES = re.compile(
    r"mailer-daemon|mail-daemon|maildaemon|postmaster|microsoftexchange|mail delivery|system administrator|mail system"
    r"|mail administrator|mail router|mail server"
)
