"""The payload of an `outbound.send` job: the fields of the mail that an action sends.

The action decides, and the job repeats it: a job shows the mail that leaves. Files stay where they are, with the action
or the original message, and the payload names them. The original's own subject is not repeated either: it is mail
content, and its retention ends before that of a job.
"""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from postroom.core.actions.parameters import copies_of, recipients_of
from postroom.core.mail.auto_reply import answer_goes_to
from postroom.core.mail.references import thread_references
from postroom.core.rules.facts import MessageFacts

MESSAGE_TYPES: Mapping[str, Literal["forward", "reply"]] = {"forward": "forward", "auto_reply": "reply"}


def send_payload(
    action_type: str, parameters: Mapping[str, Any], message_id: UUID, message: MessageFacts, thread_id: str
) -> dict[str, Any]:
    """The fields of the mail that the action sends about this message. Empty ones are left out."""
    fields = {
        "message_type": MESSAGE_TYPES[action_type],
        "original_message_id": str(message_id),
        "attachments": _attachments(action_type, parameters, message),
        **decided_fields(action_type, parameters),
    }
    if action_type == "auto_reply":
        to = [answer_goes_to(message.sender, message.headers)]
        fields |= {"to": to, "thread_id": thread_id, "references": thread_references(message.headers)}
    return {name: value for name, value in fields.items() if value}


def decided_fields(action_type: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the action alone decides, independent of the original message."""
    decided: dict[str, Any] = {
        "cc": list(copies_of(parameters)),
        "subject": parameters.get("subject"),
        "body_plain": parameters.get("note" if action_type == "forward" else "text"),
        "body_html": parameters.get("html"),
    }
    return decided | ({"to": list(recipients_of(parameters))} if action_type == "forward" else {})


def _attachments(action_type: str, parameters: Mapping[str, Any], message: MessageFacts) -> list[dict[str, str]]:
    """Each file's name and type, and where its content is."""
    own = message.attachments or () if action_type == "forward" else ()
    return [
        *({"filename": name, "mime_type": kind, "in": "original"} for name, kind in own),
        *(
            {"filename": each["filename"], "mime_type": each.get("mime_type") or "", "in": "action"}
            for each in parameters.get("attachments") or ()
        ),
    ]
