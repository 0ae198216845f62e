"""`users.threads`: conversations, listed, read and changed as a whole."""

from collections.abc import Callable

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.mailbox import ESTIMATE_UP_TO
from postroom_sandbox.message import Message
from postroom_sandbox.message_methods import label_change, requested_format


async def list_threads(call: Call) -> Json:
    """List threads with a matching message, ordered by the newest match."""
    parameters = call.parameters("q", "labelIds", "pageToken", "maxResults", "includeSpamTrash")
    q, labels, hidden = parameters.text("q"), parameters.texts("labelIds"), parameters.flag("includeSpamTrash")
    call.check_search(q)
    listing = ("threads", call.mailbox.owner, q, sorted(labels), hidden)
    before = call.account.pages.read(listing, parameters.text("pageToken"))
    newest: dict[str, Message] = {}
    for message in call.mailbox.search(q, labels, hidden):
        newest.setdefault(message.thread_id, message)
    found = [message for message in newest.values() if before is None or message.place < before]
    size = parameters.page_size()
    answer: Json = {"resultSizeEstimate": min(len(found), ESTIMATE_UP_TO)}
    if found:
        answer["threads"] = [_list_entry(call, message) for message in found[:size]]
    if len(found) > size:
        answer["nextPageToken"] = call.account.pages.make(listing, found[size - 1].place)
    return answer


def _list_entry(call: Call, found: Message) -> Json:
    messages = call.mailbox.thread(found.thread_id)
    history_id = max(message.history_id for message in messages)
    return {"id": found.thread_id, "snippet": messages[-1].mail.snippet, "historyId": str(history_id)}


async def get_thread(call: Call) -> Json:
    format, only = requested_format(call)
    messages = call.mailbox.thread(call.named())
    history_id = max(message.history_id for message in messages)
    shown = [message.as_json(format, only) for message in messages]
    return {"id": call.named(), "historyId": str(history_id), "messages": shown}


async def modify_thread(call: Call) -> Json:
    call.parameters()
    add, remove = await label_change(call)
    return _each(call, lambda message: call.mailbox.modify(message.id, add, remove))


async def trash_thread(call: Call) -> Json:
    call.parameters()
    return _each(call, lambda message: call.mailbox.modify(message.id, add=["TRASH"]))


async def untrash_thread(call: Call) -> Json:
    call.parameters()
    return _each(call, lambda message: call.mailbox.modify(message.id, remove=["TRASH"]))


async def delete_thread(call: Call) -> Json:
    call.parameters()
    for message in call.mailbox.thread(call.named()):
        call.mailbox.delete(message.id)
    return {}


def _each(call: Call, change: Callable[[Message], Message]) -> Json:
    changed = [change(message) for message in call.mailbox.thread(call.named())]
    return {"id": call.named(), "messages": [message.labelled() for message in changed]}


ENDPOINTS: dict[str, Endpoint] = {
    "threads.list": list_threads,
    "threads.get": get_thread,
    "threads.modify": modify_thread,
    "threads.trash": trash_thread,
    "threads.untrash": untrash_thread,
    "threads.delete": delete_thread,
}
