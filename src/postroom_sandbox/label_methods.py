"""`users.labels`."""

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.labels import LOOK
from postroom_sandbox.refusal import invalid
from postroom_sandbox.requests import json_body, text_in

# Google's clients send back whole labels, including fields that only Gmail sets.
LABEL_FIELDS = ("id", "name", "type", "messagesTotal", "messagesUnread", "threadsTotal", "threadsUnread", *LOOK)


async def list_labels(call: Call) -> Json:
    call.parameters()
    return {"labels": [label.as_json() for label in call.mailbox.labels.all()]}


async def get_label(call: Call) -> Json:
    call.parameters()
    return call.mailbox.count(call.mailbox.labels.get(call.named()))


async def create_label(call: Call) -> Json:
    call.parameters()
    fields = await json_body(call.request, *LABEL_FIELDS)
    created = call.mailbox.labels.create(text_in(fields, "name"), _look(fields))
    return {"id": created.id, "name": created.name, **created.look}


async def update_label(call: Call) -> Json:
    """Replace a label: fields that are not given are reset to the defaults."""
    return await _change(call, {})


async def patch_label(call: Call) -> Json:
    """Change a label: fields that are not given stay."""
    return await _change(call, call.mailbox.labels.get(call.named()).as_json())


async def _change(call: Call, before: Json) -> Json:
    call.parameters()
    given = await json_body(call.request, *LABEL_FIELDS)
    if given.get("id", call.named()) != call.named():
        raise invalid("Label id in the body does not match the address")
    fields = {**before, **given}
    return call.mailbox.labels.update(call.named(), text_in(fields, "name"), _look(fields)).as_json()


async def delete_label(call: Call) -> Json:
    call.parameters()
    call.mailbox.delete_label(call.named())
    return {}


def _look(fields: Json) -> Json:
    return {name: fields[name] for name in LOOK if name in fields}


ENDPOINTS: dict[str, Endpoint] = {
    "labels.list": list_labels,
    "labels.get": get_label,
    "labels.create": create_label,
    "labels.update": update_label,
    "labels.patch": patch_label,
    "labels.delete": delete_label,
}
