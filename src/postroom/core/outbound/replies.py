"""Replies of mail servers, and their meaning for a recipient.

A reply comes from a stranger. It is bounded in lines and bytes, and its text is cleaned and cut before anybody sees it.
Its first digit decides between now, later and never, with the exceptions of RFC 5321; its class says why.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

from postroom.core.errors import PostroomError
from postroom.core.outbound.bounce_classes import BounceClass, class_of, class_of_code

LONGEST_LINE = 4_096
MOST_LINES = 256
LONGEST_TEXT = 500
LONGEST_WAIT = timedelta(hours=24)

Phase = Literal["route", "connect", "greeting", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "content", "local"]
Decided = Literal["sent", "deferred", "bounced", "rejected"]


class BadReply(PostroomError):
    """The server sent something that is not a reply, or one without an end."""


class Reply(NamedTuple):
    """The reply of a server, or our own finding without one, in which case there is no code.

    `text` is cleaned; `host` is the server that said it, if one did.
    """

    code: int | None
    enhanced: str | None
    text: str
    host: str | None
    phase: Phase

    @property
    def severity(self) -> int:
        """2 for success, 3 for more, 4 for later, 5 for never."""
        return self.code // 100 if self.code is not None else int((self.enhanced or "4")[0])

    def __str__(self) -> str:
        said = " ".join(str(part) for part in (self.code, self.enhanced, self.text) if part)
        return f"{self.host}: {said}" if self.host else said


class Verdict(NamedTuple):
    """The meaning of a reply for a recipient."""

    result: Decided
    bounce_class: BounceClass | None = None
    retry_after: timedelta | None = None


@dataclass
class ReplyLines:
    """Collects the lines of one reply."""

    lines: list[bytes]
    code: int = 0

    @classmethod
    def none_yet(cls) -> "ReplyLines":
        return cls([])

    def add(self, line: bytes) -> bool:
        """Add a line without its end; return whether it was the last one. Raises BadReply."""
        found = _LINE.fullmatch(line)
        if found is None:
            raise BadReply(f"this is no line of a reply: {cleaned(line)[:80]!r}")
        code = int(found["code"])
        if self.lines and code != self.code:
            raise BadReply(f"a reply began with {self.code} and went on with {code}")
        if len(self.lines) >= MOST_LINES:
            raise BadReply(f"a reply has more than {MOST_LINES} lines")
        self.code = code
        self.lines.append(found["text"] or b"")
        return found["more"] != b"-"

    def reply(self, host: str, phase: Phase) -> Reply:
        return reply_of(self.code, self.lines, host, phase)


_LINE = re.compile(rb"(?P<code>[2-5][0-9]{2})(?:(?P<more>[ -])(?P<text>.*))?", re.DOTALL)
_ENHANCED = re.compile(rb"\s*([245]\.[0-9]{1,3}\.[0-9]{1,3})(?=\s|$)[ \t]*")


def reply_of(code: int, lines: Sequence[bytes], host: str | None, phase: Phase) -> Reply:
    """The reply in these lines, which have lost their code. Each of them may repeat the enhanced status code."""
    first = _ENHANCED.match(lines[0]) if lines else None
    enhanced = first[1].decode("ascii") if first is not None and first[1][:1] == b"%d" % (code // 100) else None
    if enhanced is not None:
        lines = [_ENHANCED.sub(b"", line, count=1) if _ENHANCED.match(line) else line for line in lines]
    text = " ".join(filter(None, (cleaned(line).strip() for line in lines)))
    return Reply(code, enhanced, text[:LONGEST_TEXT], host, phase)


def found_out(enhanced: str, text: str, phase: Phase, host: str | None = None) -> Reply:
    """A reply of our own, where no server gave one."""
    return Reply(None, enhanced, cleaned(text.encode("utf-8", "replace"))[:LONGEST_TEXT], host, phase)


def cleaned(text: bytes) -> str:
    """Text of a stranger, without control characters, marks of direction and the like."""
    read = text[:LONGEST_LINE].decode("utf-8", "replace")
    return read if read.isprintable() else "".join(each if each.isprintable() else " " for each in read)


def verdict(reply: Reply) -> Verdict:
    """The verdict on the recipient that the reply was given for."""
    match reply.severity:
        case 2:
            return Verdict("sent")
        case 5 if not _is_later_all_the_same(reply):
            why = bounce_class(reply)
            return Verdict("rejected" if _is_refusal(reply, why) else "bounced", why)
        case _:
            return Verdict("deferred", bounce_class(reply), asked_wait(reply.text))


_REFUSALS = frozenset({BounceClass.POLICY, BounceClass.REPUTATION, BounceClass.CONTENT})


def _is_refusal(reply: Reply, why: BounceClass) -> bool:
    """Whether the sender or the mail is refused. Without a reason, a refused recipient counts as bounced."""
    return why in _REFUSALS or (why is BounceClass.UNEXPLAINED and reply.phase != "rcpt")


def _is_later_all_the_same(reply: Reply) -> bool:
    """Whether a 5xx means later.

    Before MAIL it is about the host, or about us, and not about this mail. Too many recipients is about this
    transaction (RFC 5321, 4.5.3.1.10). Some greylists answer 5xx.
    """
    if reply.code is None:
        return False
    if reply.phase in ("connect", "greeting", "ehlo", "starttls", "auth"):
        return True
    if reply.phase == "rcpt" and (reply.enhanced == "5.5.3" or _TOO_MANY.search(reply.text)):
        return True
    return bounce_class(reply) is BounceClass.GREYLIST


_TOO_MANY = re.compile(r"too many recipients|recipients? (?:limit|count) exceeded", re.IGNORECASE)


def bounce_class(reply: Reply) -> BounceClass:
    """Why a recipient was not reached, by a reply that is not a success."""
    later = reply.severity == 4
    found = class_of(reply.text, reply.enhanced, later)
    if found is None and not later:
        found = class_of_code(reply.code)
    if found is BounceClass.HARD and not _is_about_the_recipient(reply):
        return BounceClass.POLICY
    return found or (BounceClass.SOFT if later else BounceClass.UNEXPLAINED)


def _is_about_the_recipient(reply: Reply) -> bool:
    """Whether a reply can say that an address does not exist. Before RCPT it speaks of the sender, or of the host."""
    return reply.phase in ("route", "local", "rcpt", "data", "content") or reply.code in _HOST_TAKES_NO_MAIL


_HOST_TAKES_NO_MAIL = (521, 556)  # RFC 7504


_SLOW_DOWN = re.compile(
    r"\brate\b|too (?:many|fast|much)|throttl|\bbusy\b|volume|slow down|exceeded|limit", re.IGNORECASE
)


def asks_to_slow_down(reply: Reply) -> bool:
    """Whether a reply that defers is about how much we send, and not about one mail: that must not slow down others."""
    if reply.code in (None, 421) or reply.phase in ("connect", "greeting", "ehlo", "data"):
        return True
    return bounce_class(reply) is not BounceClass.FULL and _SLOW_DOWN.search(reply.text) is not None


_CLOCK = re.compile(r"\bin (\d{1,2}):(\d{2})(?::(\d{2}))?\b")
_SPAN = re.compile(
    r"\b(?:in|after|for|wait) (?:about |at least )?(\d{1,6}) ?(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b",
    re.I,
)
_UNITS = {"s": 1, "m": 60, "h": 3600}


def asked_wait(text: str) -> timedelta | None:
    """How long the server asks us to wait, if its text says so: `in 300 seconds`, `in 00:04:58`."""
    if found := _CLOCK.search(text):
        hours, minutes, seconds = (
            (int(found[1]), int(found[2]), int(found[3])) if found[3] else (0, int(found[1]), int(found[2]))
        )
        wait = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    elif found := _SPAN.search(text):
        wait = timedelta(seconds=int(found[1]) * _UNITS[found[2][0].lower()])
    else:
        return None
    return min(wait, LONGEST_WAIT) if wait else None
