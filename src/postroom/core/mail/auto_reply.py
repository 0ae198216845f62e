"""Whether a message may be answered automatically (RFC 3834): never lists, bulk, automatic mail or empty senders.

Two programs that answer each other never stop. So whatever looks automatic gets no answer, and neither does mail that
does not name the user among its recipients.
"""

import re
from collections.abc import Collection

from postroom.core.mail.addresses import addresses
from postroom.core.mail.carrier import MARK
from postroom.core.mail.headers import Headers, values

BULK = frozenset({"bulk", "list", "junk", "auto_reply"})
# Header fields that programs add, and people's mail clients do not.
MARKS = (
    ("list-id", "it came through a mailing list"),
    ("list-unsubscribe", "it came through a mailing list"),
    ("list-post", "it came through a mailing list"),
    ("list-help", "it came through a mailing list"),
    ("x-auto-response-suppress", "its sender wants no automatic answer"),
    ("x-autoreply", "it is an automatic answer itself"),
    ("x-autorespond", "it is an automatic answer itself"),
    ("x-autoresponse", "it is an automatic answer itself"),
    ("feedback-id", "it is bulk mail"),
    ("x-loop", "it has passed through here before"),
)
_ROBOT = re.compile(
    r"(mailer[-_.]?daemon|postmaster|(do[-_.]?)?not?[-_.]?reply|owner[-_.].*|.*[-_.](request|owner|bounces?)"
    r"|bounces?([-_.+].*)?|listserv|majordomo|notifications?|alerts?|root|nobody|www-data|cron)(\+.*)?",
    re.ASCII,
)


def answer_goes_to(sender: str, headers: Headers) -> str:
    """The recipient of an answer: the only address in Reply-To, else the sender."""
    named = [each for value in values(headers, "reply-to") for each in addresses(value)]
    return named[0] if len(named) == 1 else sender


def why_not_answered(sender: str, headers: Headers, own: Collection[str]) -> str | None:
    """Why no automatic answer may go to the sender; None when one may. `own` are the user's addresses."""
    sender = sender.lower()
    local, at, _ = sender.rpartition("@")
    if not at or not local:
        return "its sender has no address"
    if sender in own:
        return "it is from the user"
    if _ROBOT.fullmatch(local):
        return "its sender is a program"
    if any(value.strip() in ("<>", "") for value in values(headers, "return-path")):
        return "it is a report, with an empty sender"
    return _automatic(headers) or _not_addressed(headers, own)


AUTOMATIC_HEADERS = ("Auto-Submitted", MARK)
"""The headers that `is_automatic` looks at."""


def is_automatic(headers: Headers) -> bool:
    """Whether a program sent it: Postroom itself, by a rule or a model, or another one that says so. Such mail is no
    correspondence of the user, although it is in their sent mail.
    """
    return bool(values(headers, MARK.lower())) or _is_submitted_automatically(headers)


def _is_submitted_automatically(headers: Headers) -> bool:
    found = (value.strip().lower().partition(";")[0].strip() for value in values(headers, "auto-submitted"))
    return any(each not in ("", "no") for each in found)


def _automatic(headers: Headers) -> str | None:
    if _is_submitted_automatically(headers):
        return "it was sent automatically"
    if any(value.strip().lower() in BULK for value in values(headers, "precedence")):
        return "it is bulk mail"
    for name, reason in MARKS:
        if values(headers, name):
            return reason
    if any(value.lower().lstrip().startswith("multipart/report") for value in values(headers, "content-type")):
        return "it is a report"
    return None


def _not_addressed(headers: Headers, own: Collection[str]) -> str | None:
    named = {each for name in ("to", "cc", "resent-to") for value in values(headers, name) for each in addresses(value)}
    return None if named & set(own) else "it does not name the user among its recipients"
