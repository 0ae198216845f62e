"""The methods of Gmail's API that we call, by Google's names."""

from dataclasses import dataclass
from typing import Literal

from postroom.mailboxes.gmail.scopes import COMPOSE, FULL, LABELS, MODIFY, READONLY

Verb = Literal["GET", "POST", "PUT", "DELETE"]

# Gmail accepts mail of up to 50 MB, which base64 makes a third longer. Everything else is lists and labels.
LARGEST_MAIL = 96 << 20
LARGEST_LIST = 8 << 20


@dataclass(frozen=True)
class Method:
    """One method, the narrowest of our scopes that allows it, and the maximum size of its answer in bytes.

    A method that `changes` the mailbox, or sends mail, is sent only through the gate.
    """

    name: str
    verb: Verb
    scope: str
    largest: int = LARGEST_LIST
    changes: bool = False


GET_PROFILE = Method("getProfile", "GET", READONLY)
WATCH = Method("watch", "POST", READONLY)

LIST_MESSAGES = Method("messages.list", "GET", READONLY)
GET_MESSAGE = Method("messages.get", "GET", READONLY, LARGEST_MAIL)
MODIFY_MESSAGE = Method("messages.modify", "POST", MODIFY, changes=True)
TRASH_MESSAGE = Method("messages.trash", "POST", MODIFY, changes=True)
UNTRASH_MESSAGE = Method("messages.untrash", "POST", MODIFY, changes=True)
DELETE_MESSAGE = Method("messages.delete", "DELETE", FULL, changes=True)

CREATE_DRAFT = Method("drafts.create", "POST", COMPOSE, changes=True)
GET_DRAFT = Method("drafts.get", "GET", READONLY, LARGEST_MAIL)
LIST_DRAFTS = Method("drafts.list", "GET", READONLY)
SEND_DRAFT = Method("drafts.send", "POST", COMPOSE, changes=True)
DELETE_DRAFT = Method("drafts.delete", "DELETE", COMPOSE, changes=True)

GET_THREAD = Method("threads.get", "GET", READONLY, LARGEST_MAIL)
LIST_HISTORY = Method("history.list", "GET", READONLY)

LIST_LABELS = Method("labels.list", "GET", READONLY)
CREATE_LABEL = Method("labels.create", "POST", LABELS, changes=True)

LIST_SEND_AS = Method("settings.sendAs.list", "GET", READONLY)

METHODS = (
    GET_PROFILE, WATCH, LIST_MESSAGES, GET_MESSAGE, MODIFY_MESSAGE, TRASH_MESSAGE, UNTRASH_MESSAGE, DELETE_MESSAGE,
    CREATE_DRAFT, GET_DRAFT, LIST_DRAFTS, SEND_DRAFT, DELETE_DRAFT, GET_THREAD, LIST_HISTORY, LIST_LABELS, CREATE_LABEL,
    LIST_SEND_AS,
)  # fmt: skip
