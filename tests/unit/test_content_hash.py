"""When two events have the same content: everything counts except delivery numbers."""

from copy import deepcopy
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import parse_envelope


def event(channel: str = "webhook", kind: str | None = None, **payload: Any) -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": channel, "provider": channel, "endpoint_identity": "one"},
        "event": {"external_event_id": "1", "observed_at": "2026-11-15T08:00:00Z", "kind": kind},
        "sender": {"identity": "ada"},
        "payload": {"raw": {}, "normalized_text": "push changes", **payload},
    }


def hash_of(data: dict[str, Any], *ignored: str) -> str | None:
    return content_hash(parse_envelope(data), ignored)


def changed(data: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    data = deepcopy(data)
    *parents, last = path.split(".")
    inner = data
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return data


@pytest.mark.parametrize("text", ["push changes", " push  changes", "push changes\n", "\tpush\nchanges "])
def test_the_same_words_are_the_same_however_they_are_spaced(text: str) -> None:
    assert hash_of(event(normalized_text=text)) == hash_of(event())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("payload.normalized_text", "Push changes"),
        ("payload.raw", {"service": "web"}),
        ("payload.attachments", [{"filename": "a.jpg"}]),
        ("sender.identity", "bob"),
        ("event.external_thread_id", "t"),
        ("event.kind", "note"),
        ("source.endpoint_identity", "two"),
        ("source.provider", "internal"),
    ],
)
def test_whatever_differs_in_content_or_place_is_something_else(path: str, value: object) -> None:
    assert hash_of(changed(event(), path, value)) != hash_of(event())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event.external_event_id", "2"),
        ("event.observed_at", "2026-11-16T08:00:00Z"),
        ("control", {"idempotency_key": "k", "trace_context": {"a": "b"}}),
    ],
)
def test_the_id_the_time_and_the_key_of_a_delivery_are_no_content(path: str, value: object) -> None:
    assert hash_of(changed(event(), path, value)) == hash_of(event())


def test_metadata_counts() -> None:
    bare = event(raw=None)
    bare["control"] = {"ingestion_tier": "metadata"}
    assert hash_of(changed(bare, "payload.metadata", {"labels": ["x"]})) != hash_of(bare)


def test_the_order_of_keys_is_no_content_and_the_order_of_a_list_is() -> None:
    assert hash_of(event(raw={"a": 1, "b": {"c": 2, "d": 3}})) == hash_of(event(raw={"b": {"d": 3, "c": 2}, "a": 1}))
    assert hash_of(event(raw={"a": [1, 2]})) != hash_of(event(raw={"a": [2, 1]}))


def test_numbers_are_compared_to_their_last_digit_and_those_that_would_be_rounded_are_refused() -> None:
    for number in (2**64 - 2, -(2**63)):
        assert hash_of(event(raw={"id": number})) != hash_of(event(raw={"id": number + 1}))
    for number in (2**64, -(2**63) - 1):
        with pytest.raises(BadInput, match=r"payload\.raw: .*write it as text"):
            hash_of(event(raw={"id": number}))


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003"])
def test_without_words_nothing_is_compared(text: str) -> None:
    assert hash_of(event(normalized_text=text)) is None


# What chat services number each delivery with.


def telegram(number: int, **message: Any) -> dict[str, Any]:
    inner = {"message_id": number, "date": 1763196724 + number, "chat": {"id": 7}, "text": "push changes", **message}
    return event("telegram", raw={"update_id": 9000 + number, "message": inner})


def button(number: int, data: str = "yes", on: int = 5, nested: bool = True) -> dict[str, Any]:
    if not nested:
        return event("telegram", "callback_query", raw={"id": str(number), "data": data, "message_id": on})
    query = {"id": str(number), "data": data, "message": {"message_id": on, "date": on}}
    return event("telegram", "callback_query", raw={"update_id": number, "callback_query": query})


def slack(number: int, **parts: Any) -> dict[str, Any]:
    block = {"type": "rich_text", "block_id": f"b{number}", "elements": []}
    inner = {"type": "message", "ts": f"1.{number}", "client_msg_id": f"c{number}", "blocks": [block], **parts}
    return event("slack", raw={"event_id": f"Ev{number}", "event_time": number, "event": inner})


def discord(number: int, **parts: Any) -> dict[str, Any]:
    return event("discord", raw={"id": str(number), "timestamp": str(number), "nonce": str(number), **parts})


def gateway_entry(number: int, channel: str, **parts: Any) -> dict[str, Any]:
    """As the gateway writes it to its Redis stream."""
    raw = {"source": "telegram:7", "prompt": "push changes", "timestamp": str(number), "priority": "0", **parts}
    return event(channel, raw=raw)


@pytest.mark.parametrize(
    ("one", "again"),
    [
        (telegram(1), telegram(2)),
        (button(1), button(2)),
        (button(1, nested=False), button(2, nested=False)),
        (slack(1), slack(2)),
        (discord(1), discord(2)),
        (gateway_entry(1, "redis"), gateway_entry(2, "redis")),
        (
            gateway_entry(1, "telegram", metadata={"telegramMessageId": 1, "telegramChatId": 7}),
            gateway_entry(2, "telegram", metadata={"telegramMessageId": 2, "telegramChatId": 7}),
        ),
    ],
    ids=["telegram", "telegram button", "bare button", "slack", "discord", "gateway", "gateway telegram"],
)
def test_what_a_person_says_again_is_the_same_though_each_delivery_is_numbered(
    one: dict[str, Any], again: dict[str, Any]
) -> None:
    assert hash_of(one) == hash_of(again)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (button(1, "yes"), button(2, "no")),
        (button(1, on=5), button(2, on=6)),
        (button(1, on=5, nested=False), button(2, on=6, nested=False)),
        (telegram(1, reply_to_message={"message_id": 3}), telegram(2, reply_to_message={"message_id": 4})),
        (telegram(1, photo=[{"file_id": "a"}]), telegram(2, photo=[{"file_id": "b"}])),
        (telegram(1), changed(telegram(1), "payload.raw.message.chat.id", 8)),
        (slack(1, thread_ts="1"), slack(2, thread_ts="2")),
        (discord(1, message_reference={"message_id": "1"}), discord(2, message_reference={"message_id": "2"})),
        (gateway_entry(1, "telegram"), gateway_entry(2, "telegram", metadata={"telegramChatId": 8})),
        (event("redis", raw={"timestamp": "1"}), event("redis", raw={"timestamp": "2"})),
    ],
    ids=[
        "data", "message", "bare message", "reply", "photo", "chat", "thread", "reference", "gateway", "own timestamp",
    ],
)  # fmt: skip
def test_what_differs_in_more_than_the_number_of_its_delivery_is_something_else(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert hash_of(one) != hash_of(other)


def test_photos_under_one_caption_are_told_apart_by_their_ids_alone() -> None:
    """A connector that says nothing of a file but that there is one."""
    one, two = (changed(telegram(n), "payload.attachments", [{"mime_type": "image/jpeg"}]) for n in (1, 2))
    assert hash_of(one) != hash_of(two)


def test_a_webhook_is_numbered_in_its_own_way_which_settings_may_name() -> None:
    one, two = (event(raw={"delivery": {"id": n, "at": [{"t": n}, {"t": n}]}, "service": "web"}) for n in (1, 2))
    assert hash_of(one) != hash_of(two)
    assert hash_of(one, "delivery.id", "delivery.at.*.t") == hash_of(two, "delivery.id", "delivery.at.*.t")
    other = changed(two, "payload.raw.service", "api")
    assert hash_of(one, "delivery.id", "delivery.at.*.t") != hash_of(other, "delivery.id", "delivery.at.*.t")


def test_of_the_members_of_a_list_only_what_is_named_does_not_count() -> None:
    one, two, other = (event(raw={"parts": [{"id": n, "text": text}]}) for n, text in ((1, "a"), (2, "a"), (1, "b")))
    assert hash_of(one, "parts.*.id") == hash_of(two, "parts.*.id")
    assert hash_of(one, "parts.*.id") != hash_of(other, "parts.*.id")
    assert hash_of(one, "parts.*") == hash_of(other, "parts.*")


@pytest.mark.parametrize("path", ["nothing", "service.name", "list.0", "list.*", "*.x"])
def test_a_path_that_leads_nowhere_leaves_everything_as_it_is(path: str) -> None:
    raw: dict[str, Any] = {"service": "web", "list": []}
    assert hash_of(event(raw=raw), path) == hash_of(event(raw=raw))
