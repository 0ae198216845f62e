"""`users` methods on a whole mailbox: profile, history, and watch."""

from itertools import islice

from postroom_sandbox.account import Call, Endpoint, Json
from postroom_sandbox.pubsub import TOPIC
from postroom_sandbox.refusal import invalid
from postroom_sandbox.requests import json_body, text_in, texts_in

HISTORY_TYPES = frozenset({"messageAdded", "messageDeleted", "labelAdded", "labelRemoved"})


async def get_profile(call: Call) -> Json:
    call.parameters()
    return {
        "emailAddress": call.mailbox.owner,
        "messagesTotal": len(call.mailbox),
        "threadsTotal": call.mailbox.threads,
        "historyId": str(call.mailbox.history_id),
    }


async def list_history(call: Call) -> Json:
    parameters = call.parameters("startHistoryId", "historyTypes", "labelId", "pageToken", "maxResults")
    kinds = parameters.texts("historyTypes")
    if unknown := sorted(kinds - HISTORY_TYPES):
        raise invalid(f"Invalid value at 'history_types': {unknown[0]}")
    if not parameters.text("startHistoryId"):
        raise invalid("Missing/invalid parameter: startHistoryId")
    start = parameters.number("startHistoryId")
    listing = ("history", call.mailbox.owner, start)
    place = call.account.pages.read(listing, parameters.text("pageToken"))
    since, size = place[0] if place else start, parameters.page_size()
    found = list(islice(call.mailbox.changes_since(since, kinds, parameters.text("labelId") or None), size + 1))
    answer: Json = {"historyId": str(call.mailbox.history_id)}
    if found:
        answer["history"] = [change.as_json() for change in found[:size]]
    if len(found) > size:
        answer["nextPageToken"] = call.account.pages.make(listing, (found[size - 1].id, ""))
    return answer


async def watch(call: Call) -> Json:
    call.parameters()
    fields = await json_body(call.request, "topicName", "labelIds", "labelFilterAction", "labelFilterBehavior")
    topic = text_in(fields, "topicName")
    if not TOPIC.fullmatch(topic):
        raise invalid(f"Invalid topicName does not match projects/*/topics/*: {topic}")
    behaviour = text_in(fields, "labelFilterBehavior") or text_in(fields, "labelFilterAction") or "include"
    if behaviour.lower() not in ("include", "exclude"):
        raise invalid(f"Invalid value at 'label_filter_behavior': {behaviour}")
    label_ids = frozenset(texts_in(fields, "labelIds"))
    return call.account.watcher.begin(topic, label_ids, behaviour.lower() == "exclude")


async def stop(call: Call) -> Json:
    call.parameters()
    call.account.watcher.stop()
    return {}


ENDPOINTS: dict[str, Endpoint] = {
    "getProfile": get_profile,
    "history.list": list_history,
    "watch": watch,
    "stop": stop,
}
