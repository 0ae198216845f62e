"""The methods of Gmail's API that we call, by Google's names."""

from dataclasses import dataclass
from typing import Literal

from postroom.gmail.scopes import COMPOSE, FULL, LABELS, MODIFY, READONLY, SEND

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
STOP = Method("stop", "POST", READONLY)

LIST_MESSAGES = Method("messages.list", "GET", READONLY)
GET_MESSAGE = Method("messages.get", "GET", READONLY, LARGEST_MAIL)
MODIFY_MESSAGE = Method("messages.modify", "POST", MODIFY, changes=True)
BATCH_MODIFY = Method("messages.batchModify", "POST", MODIFY, changes=True)
BATCH_DELETE = Method("messages.batchDelete", "POST", FULL, changes=True)
TRASH_MESSAGE = Method("messages.trash", "POST", MODIFY, changes=True)
UNTRASH_MESSAGE = Method("messages.untrash", "POST", MODIFY, changes=True)
DELETE_MESSAGE = Method("messages.delete", "DELETE", FULL, changes=True)
SEND_MESSAGE = Method("messages.send", "POST", SEND, changes=True)
GET_ATTACHMENT = Method("messages.attachments.get", "GET", READONLY, LARGEST_MAIL)

CREATE_DRAFT = Method("drafts.create", "POST", COMPOSE, changes=True)
GET_DRAFT = Method("drafts.get", "GET", READONLY, LARGEST_MAIL)
LIST_DRAFTS = Method("drafts.list", "GET", READONLY)
SEND_DRAFT = Method("drafts.send", "POST", COMPOSE, changes=True)
DELETE_DRAFT = Method("drafts.delete", "DELETE", COMPOSE, changes=True)

GET_THREAD = Method("threads.get", "GET", READONLY, LARGEST_MAIL)
LIST_HISTORY = Method("history.list", "GET", READONLY)

LIST_LABELS = Method("labels.list", "GET", READONLY)
GET_LABEL = Method("labels.get", "GET", READONLY)
CREATE_LABEL = Method("labels.create", "POST", LABELS, changes=True)
UPDATE_LABEL = Method("labels.update", "PUT", LABELS, changes=True)
DELETE_LABEL = Method("labels.delete", "DELETE", LABELS, changes=True)

LIST_SEND_AS = Method("settings.sendAs.list", "GET", READONLY)

METHODS = (
    GET_PROFILE, WATCH, STOP, LIST_MESSAGES, GET_MESSAGE, MODIFY_MESSAGE, BATCH_MODIFY, BATCH_DELETE, TRASH_MESSAGE,
    UNTRASH_MESSAGE, DELETE_MESSAGE, SEND_MESSAGE, GET_ATTACHMENT, CREATE_DRAFT, GET_DRAFT, LIST_DRAFTS, SEND_DRAFT,
    DELETE_DRAFT, GET_THREAD, LIST_HISTORY, LIST_LABELS, GET_LABEL, CREATE_LABEL, UPDATE_LABEL, DELETE_LABEL,
    LIST_SEND_AS,
)  # fmt: skip
