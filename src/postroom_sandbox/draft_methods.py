"""`users.drafts`."""

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.mailbox import ESTIMATE_UP_TO
from postroom_sandbox.message_methods import MESSAGE_FIELDS, checked_raw, requested_format
from postroom_sandbox.outgoing import Draft
from postroom_sandbox.requests import known_fields, raw_in, text_in, uploaded


async def list_drafts(call: Call) -> Json:
    parameters = call.parameters("q", "pageToken", "maxResults", "includeSpamTrash")
    q, hidden = parameters.text("q"), parameters.flag("includeSpamTrash")
    listing = ("drafts", call.mailbox.owner, q, hidden)
    before = call.account.pages.read(listing, parameters.text("pageToken"))
    matching = {message.id for message in call.mailbox.search(q, ["DRAFT"], hidden)}
    found = [draft for draft in call.account.outgoing.drafts() if draft.message.id in matching]
    found = [draft for draft in found if before is None or draft.message.place < before]
    size = parameters.page_size()
    answer: Json = {"resultSizeEstimate": min(len(found), ESTIMATE_UP_TO)}
    if found:
        answer["drafts"] = [{"id": draft.id, "message": draft.message.reference()} for draft in found[:size]]
    if len(found) > size:
        answer["nextPageToken"] = call.account.pages.make(listing, found[size - 1].message.place)
    return answer


async def get_draft(call: Call) -> Json:
    format, _ = requested_format(call)
    draft = call.account.outgoing.get(call.named())
    return {"id": draft.id, "message": draft.message.as_json(format)}


async def create_draft(call: Call) -> Json:
    call.parameters()
    _, raw, thread = await _draft_in(call)
    return _draft_resource(call.account.outgoing.create(checked_raw(raw), thread))


async def update_draft(call: Call) -> Json:
    call.parameters()
    _, raw, thread = await _draft_in(call)
    return _draft_resource(call.account.outgoing.update(call.named(), checked_raw(raw), thread))


async def delete_draft(call: Call) -> Json:
    call.parameters()
    call.account.outgoing.delete(call.named())
    return {}


async def send_draft(call: Call) -> Json:
    """Send the draft with this id, optionally with new content; without an id, the given message."""
    call.parameters()
    id, raw, thread = await _draft_in(call)
    outgoing = call.account.outgoing
    sent = outgoing.send_draft(id, raw) if id else outgoing.send(checked_raw(raw), thread)
    return sent.labelled()


def _draft_resource(draft: Draft) -> Json:
    return {"id": draft.id, "message": draft.message.labelled()}


async def _draft_in(call: Call) -> tuple[str, bytes | None, str | None]:
    """Parse a draft in a request: its id, the bytes of its message, and the requested thread."""
    fields, media = await uploaded(call.request)
    known_fields(fields, "id", "message")
    message = known_fields(fields.get("message", {}), *MESSAGE_FIELDS)
    raw = media if media is not None else raw_in(message)
    return text_in(fields, "id"), raw, text_in(message, "threadId") or None


ENDPOINTS: dict[str, Endpoint] = {
    "drafts.list": list_drafts,
    "drafts.get": get_draft,
    "drafts.create": create_draft,
    "drafts.update": update_draft,
    "drafts.delete": delete_draft,
    "drafts.send": send_draft,
}
