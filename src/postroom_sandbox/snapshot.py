"""A mailbox in a file, so that a sandbox can go on where it ended: its mail and labels, without the older history."""

import base64
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from postroom_sandbox.labels import Label
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.message import Message
from postroom_sandbox.mime import Mail

VERSION = 1


def save_mailbox(mailbox: Mailbox, file: Path) -> None:
    """Write the mailbox; the file is replaced at once, so that a crash leaves the old one."""
    content = {
        "version": VERSION,
        "owner": mailbox.owner,
        "history_id": mailbox.history_id,
        "labels": [each.as_json() for each in mailbox.labels.all() if each.type == "user"],
        "messages": [_as_json(each) for each in mailbox.search(include_spam_trash=True)],
    }
    beside = file.with_name(f"{file.name}.new")
    beside.write_text(json.dumps(content), encoding="utf-8")
    os.replace(beside, file)


def load_mailbox(mailbox: Mailbox, file: Path) -> bool:
    """Fill an empty mailbox from a file. False if there is none, or one that is not ours."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if (content["version"], content["owner"]) != (VERSION, mailbox.owner):
            return False
        labels = [_label(each) for each in content["labels"]]
        messages = [_message(each) for each in content["messages"]]
        history_id = int(content["history_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    for label in labels:
        mailbox.labels.put_back(label)
    for message in messages:
        mailbox.put_back(message)
    mailbox.history_id = history_id
    mailbox.expire_history()
    return True


def _as_json(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "thread_id": message.thread_id,
        "received_at": message.received_at.isoformat(),
        "labels": sorted(message.labels),
        "history_id": message.history_id,
        "raw": base64.b64encode(message.mail.raw).decode("ascii"),
    }


def _message(stored: dict[str, Any]) -> Message:
    return Message(
        str(stored["id"]),
        str(stored["thread_id"]),
        Mail(base64.b64decode(stored["raw"])),
        datetime.fromisoformat(stored["received_at"]),
        frozenset(stored["labels"]),
        int(stored["history_id"]),
    )


def _label(stored: dict[str, Any]) -> Label:
    look = {name: value for name, value in stored.items() if name not in ("id", "name", "type")}
    return Label(str(stored["id"]), str(stored["name"]), "user", look)
