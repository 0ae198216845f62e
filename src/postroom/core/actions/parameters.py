"""The parameters of actions, checked one by one. Each check raises BadInput."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, cast

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.mail.label_names import looks_like

# Gmail's own labels are states and places that have actions of their own, each with its own safety policy. Applying or
# removing them like a user's label would bypass that policy.
INSTEAD: Mapping[str, str] = {
    "INBOX": "use archive, or restore for mail in the trash; undo brings archived mail back",
    "TRASH": "use trash, or restore",
    "SPAM": "use trash, or report it as spam in your mail program",
    "UNREAD": "use mark_unread, or mark_read",
    "STARRED": "use star, or unstar",
    "IMPORTANT": "use star; Gmail itself marks mail as important",
    "SENT": "use a label of your own; only Gmail adds this one",
    "DRAFT": "use a label of your own; only Gmail adds this one",
    "CHAT": "use a label of your own; only Gmail adds this one",
}
CATEGORIES = "CATEGORY_"
# Names that Gmail shows for its own places. Gmail refuses a label that is spelled exactly like one of them.
SHOWN_BY_GMAIL = ("Drafts", "Chats", "All Mail", "Sent Mail", "Muted", "Archive")
LONGEST_LABEL = 225
LONGEST_TEXT = 100_000
LONGEST_SUBJECT = 500
MOST_RECIPIENTS = 20
MOST_ATTACHMENTS = 10
LARGEST_ATTACHMENTS = 1_400_000
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MIME_TYPE = re.compile(r"(?!multipart/|message/)[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,120}")


def recipients_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The recipients of a forward, given as one address or a list."""
    return _as_tuple(parameters.get("to"))


def copies_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The Cc recipients of an outgoing mail."""
    return _as_tuple(parameters.get("cc"))


def _as_tuple(given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(cast("Sequence[str]", given or ()))


def check_label(field: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise BadInput(field, "is missing or empty", "name a label, such as Receipts")
    if len(value) > LONGEST_LABEL or not value.isprintable():
        raise BadInput(field, "is not a valid label name", f"use up to {LONGEST_LABEL} printable characters")
    if (instead := instead_of_label(value)) is not None:
        raise BadInput(field, f"{value.strip()!r} is a label of Gmail itself, not one of the user's", instead)


def instead_of_label(name: str) -> str | None:
    """The remedy for a label of Gmail's own, or for a name that looks like one; None for a user's label."""
    if unicodedata.normalize("NFKC", name).strip().casefold().startswith(CATEGORIES.casefold()):
        return "use a label of your own; categories are Gmail's"
    own = looks_like(name, INSTEAD)
    if own is not None:
        return INSTEAD[own]
    if (looks_like(name, SHOWN_BY_GMAIL) or name).casefold() != name.casefold():
        return "use a name that cannot be taken for one of Gmail's own"
    return None


def check_addresses(field: str, value: object) -> None:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise BadInput(field, "is missing", "name one address, or a list of them")
    addresses = cast("Sequence[object]", given)
    if len(addresses) > MOST_RECIPIENTS:
        raise BadInput(field, f"has {len(addresses)} addresses", f"use at most {MOST_RECIPIENTS}")
    for address in addresses:
        if not isinstance(address, str) or not is_address(address):
            raise BadInput(field, "contains something that is not a mail address", "write each as ada@example.com")


def check_copies(field: str, value: object) -> None:
    if value is not None:
        check_addresses(field, value)


def check_attachments(field: str, value: object) -> None:
    """Check files in base64. Few and small, since they are stored with the action."""
    if value is None:
        return
    given = cast("Sequence[Any]", value if isinstance(value, list | tuple) else ())
    wanted = {"filename": str, "data": str, "mime_type": str}
    for each in given:
        if (
            not isinstance(each, Mapping)
            or not {"filename", "data"} <= cast("Mapping[str, Any]", each).keys() <= wanted.keys()
        ):
            raise BadInput(
                field, "contains something that is not an attachment", "give each filename, mime_type and data"
            )
        file = cast("Mapping[str, Any]", each)
        if any(not isinstance(file[name], str) for name in file) or not _BASE64.fullmatch(file["data"]):
            raise BadInput(
                field, "contains data that is not base64", "encode each file in standard base64, without breaks"
            )
        if "mime_type" in file and not _MIME_TYPE.fullmatch(file["mime_type"]):
            raise BadInput(field, "contains an invalid mime_type", "write it as application/pdf")
    if not given or len(given) > MOST_ATTACHMENTS or sum(len(each["data"]) for each in given) > LARGEST_ATTACHMENTS:
        problem = f"are none, more than {MOST_ATTACHMENTS}, or too large"
        raise BadInput(field, problem, f"give a list with up to {LARGEST_ATTACHMENTS:,} characters of base64")


def is_address(text: str) -> bool:
    """Whether the text is one bare address, with nothing in it that could start another header or recipient."""
    return text.isprintable() and not set(text) & set(' ,;:<>()[]\\"') and canonical(text) is not None


def check_needed_text(field: str, value: object) -> None:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadInput(field, "is missing or empty", "give the text of the reply")
    check_text(field, value)


def check_text(field: str, value: object, longest: int = LONGEST_TEXT) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise BadInput(field, "is not a text", "use a text")
    if len(value) > longest or "\0" in value:
        raise BadInput(field, f"has {len(value)} characters, or a NUL among them", f"use at most {longest}")


def check_subject(field: str, value: object) -> None:
    check_text(field, value, LONGEST_SUBJECT)
    if isinstance(value, str) and not value.isprintable():
        raise BadInput(field, "contains line breaks or control characters", "use one line")


def accept(field: str, value: object) -> None:
    """Accept any value; `check_parameters` checks it together with the parameters beside it."""
