"""The methods of Gmail's API that the sandbox supports: paths, scopes and quota prices.

Scopes are those of Google's discovery document; a test compares them. Prices are for projects created since May 2026;
where no newer price is known, the older one is used.
"""

from dataclasses import dataclass

GOOGLE = "https://www.googleapis.com/auth/"
FULL = "https://mail.google.com/"
MODIFY = f"{GOOGLE}gmail.modify"
READONLY = f"{GOOGLE}gmail.readonly"
METADATA = f"{GOOGLE}gmail.metadata"
COMPOSE = f"{GOOGLE}gmail.compose"
SEND = f"{GOOGLE}gmail.send"
INSERT = f"{GOOGLE}gmail.insert"
LABELS = f"{GOOGLE}gmail.labels"
SETTINGS_BASIC = f"{GOOGLE}gmail.settings.basic"
PUBSUB = f"{GOOGLE}pubsub"
CLOUD = f"{GOOGLE}cloud-platform"
OPENID = "openid"
EMAIL = "email"
USERINFO_EMAIL = f"{GOOGLE}userinfo.email"

GMAIL_SCOPES = frozenset({FULL, MODIFY, READONLY, METADATA, COMPOSE, SEND, INSERT, LABELS, SETTINGS_BASIC})
ALL_SCOPES = GMAIL_SCOPES | {PUBSUB, CLOUD, OPENID, EMAIL, USERINFO_EMAIL}

_READ = (FULL, METADATA, MODIFY, READONLY)
_READ_BODY = (FULL, MODIFY, READONLY)
_WRITE = (FULL, MODIFY)
_DRAFT_READ = (FULL, COMPOSE, MODIFY, READONLY)
_DRAFT_WRITE = (FULL, COMPOSE, MODIFY)
_LABEL_READ = (FULL, LABELS, METADATA, MODIFY, READONLY)
_LABEL_WRITE = (FULL, LABELS, MODIFY)
_SETTINGS_READ = (FULL, MODIFY, READONLY, SETTINGS_BASIC)
_SETTINGS_WRITE = (SETTINGS_BASIC,)

USER = "/gmail/v1/users/{userId}"
UPLOAD = "/upload"


@dataclass(frozen=True)
class Method:
    """One method, by Google's name without the prefix `gmail.users.`."""

    name: str
    verb: str
    path: str
    scopes: tuple[str, ...]
    units: int
    uploads: bool = False


METHODS = {
    method.name: method
    for method in (
        Method("getProfile", "GET", "/profile", (FULL, COMPOSE, METADATA, MODIFY, READONLY), 1),
        Method("watch", "POST", "/watch", _READ, 100),
        Method("stop", "POST", "/stop", _READ, 50),
        Method("messages.list", "GET", "/messages", _READ, 5),
        Method("messages.insert", "POST", "/messages", (FULL, INSERT, MODIFY), 25, uploads=True),
        Method("messages.import", "POST", "/messages/import", (FULL, INSERT, MODIFY), 25, uploads=True),
        Method("messages.send", "POST", "/messages/send", (FULL, COMPOSE, MODIFY, SEND), 100, uploads=True),
        Method("messages.batchModify", "POST", "/messages/batchModify", _WRITE, 50),
        Method("messages.batchDelete", "POST", "/messages/batchDelete", (FULL,), 50),
        Method("messages.get", "GET", "/messages/{id}", _READ, 20),
        Method("messages.delete", "DELETE", "/messages/{id}", (FULL,), 10),
        Method("messages.modify", "POST", "/messages/{id}/modify", _WRITE, 5),
        Method("messages.trash", "POST", "/messages/{id}/trash", _WRITE, 20),
        Method("messages.untrash", "POST", "/messages/{id}/untrash", _WRITE, 5),
        Method("messages.attachments.get", "GET", "/messages/{messageId}/attachments/{id}", _READ_BODY, 5),
        Method("threads.list", "GET", "/threads", _READ, 10),
        Method("threads.get", "GET", "/threads/{id}", _READ, 10),
        Method("threads.modify", "POST", "/threads/{id}/modify", _WRITE, 10),
        Method("threads.trash", "POST", "/threads/{id}/trash", _WRITE, 10),
        Method("threads.untrash", "POST", "/threads/{id}/untrash", _WRITE, 10),
        Method("threads.delete", "DELETE", "/threads/{id}", (FULL,), 20),
        Method("drafts.list", "GET", "/drafts", _DRAFT_READ, 5),
        Method("drafts.create", "POST", "/drafts", _DRAFT_WRITE, 10, uploads=True),
        Method("drafts.send", "POST", "/drafts/send", _DRAFT_WRITE, 100, uploads=True),
        Method("drafts.get", "GET", "/drafts/{id}", _DRAFT_READ, 5),
        Method("drafts.update", "PUT", "/drafts/{id}", _DRAFT_WRITE, 15, uploads=True),
        Method("drafts.delete", "DELETE", "/drafts/{id}", _DRAFT_WRITE, 10),
        Method("labels.list", "GET", "/labels", _LABEL_READ, 1),
        Method("labels.create", "POST", "/labels", _LABEL_WRITE, 5),
        Method("labels.get", "GET", "/labels/{id}", _LABEL_READ, 1),
        Method("labels.update", "PUT", "/labels/{id}", _LABEL_WRITE, 5),
        Method("labels.patch", "PATCH", "/labels/{id}", _LABEL_WRITE, 5),
        Method("labels.delete", "DELETE", "/labels/{id}", _LABEL_WRITE, 5),
        Method("history.list", "GET", "/history", _READ, 2),
        Method("settings.sendAs.list", "GET", "/settings/sendAs", _SETTINGS_READ, 1),
        Method("settings.sendAs.get", "GET", "/settings/sendAs/{sendAsEmail}", _SETTINGS_READ, 1),
        Method("settings.filters.list", "GET", "/settings/filters", _SETTINGS_READ, 1),
        Method("settings.filters.create", "POST", "/settings/filters", _SETTINGS_WRITE, 5),
        Method("settings.filters.get", "GET", "/settings/filters/{id}", _SETTINGS_READ, 1),
        Method("settings.filters.delete", "DELETE", "/settings/filters/{id}", _SETTINGS_WRITE, 5),
        Method("settings.getVacation", "GET", "/settings/vacation", _SETTINGS_READ, 1),
        Method("settings.updateVacation", "PUT", "/settings/vacation", _SETTINGS_WRITE, 5),
    )
}

PRICES = {name: method.units for name, method in METHODS.items()}
