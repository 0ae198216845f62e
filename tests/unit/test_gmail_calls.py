"""Our calls beside Google's discovery document, and the values that are refused before anything is sent."""

import json
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from postroom.core.errors import BadInput
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.calls import LARGEST_IN_JSON, LARGEST_SENT, Call
from postroom.mailboxes.gmail.methods import METHODS, Method
from postroom.mailboxes.gmail.scopes import LEVELS, level_for
from postroom.mailboxes.gmail.terms import PRICES, Terms
from postroom_sandbox import methods as sandbox

DISCOVERY = json.loads(
    (Path(googleapiclient.__file__).parent / "discovery_cache" / "documents" / "gmail.v1.json").read_text("utf-8")
)
EVERY_CALL: list[Call[Any]] = [
    calls.get_profile(),
    calls.watch("projects/p/topics/t", ["INBOX"]),
    calls.list_messages("q", ["INBOX"], "t", 100, True),
    calls.get_message("18c2", "metadata", ["Subject"]),
    calls.modify_message("18c2", ["A"], ["B"]),
    calls.trash_message("18c2"),
    calls.untrash_message("18c2"),
    calls.delete_message("18c2"),
    calls.create_draft(b"Subject: x\r\n\r\n", "18c0"),
    calls.get_draft("r1"),
    calls.list_drafts("q", "t", 100),
    calls.send_draft("r1"),
    calls.delete_draft("r1"),
    calls.get_thread("18c2", "metadata", ["Subject"]),
    calls.list_history(1, "t", ["messageAdded"], "INBOX", 100),
    calls.list_labels(),
    calls.create_label("Work", "labelShow", "show"),
    calls.list_send_as(),
]


def documented(method: Method) -> dict[str, Any]:
    *resources, name = method.name.split(".")
    found = DISCOVERY["resources"]["users"]
    for resource in resources:
        found = found["resources"][resource]
    return found["methods"][name]


def named(call: Call[Any]) -> str:
    return call.method.name


def test_every_method_is_called() -> None:
    assert {call.method for call in EVERY_CALL} == set(METHODS)


@pytest.mark.parametrize("call", EVERY_CALL, ids=named)
def test_a_call_is_what_google_documents(call: Call[Any]) -> None:
    truth = documented(call.method)
    template = truth["flatPath"].removeprefix("gmail/v1/users/{userId}").split("/")
    path = call.path.split("/")
    assert truth["httpMethod"] == call.method.verb
    assert len(template) == len(path)
    assert all(ours == theirs or theirs.startswith("{") for ours, theirs in zip(path, template, strict=True))
    assert call.parameters.keys() <= truth["parameters"].keys()
    assert call.method.scope in truth["scopes"]
    assert (call.content is not None) == ("request" in truth)
    if call.content is not None:
        properties = DISCOVERY["schemas"][truth["request"]["$ref"]]["properties"]
        assert json.loads(call.content).keys() <= properties.keys()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_level_of_a_method_covers_its_scope(method: Method) -> None:
    assert set(LEVELS[level_for(method.scope)]) & set(documented(method)["scopes"])


def test_every_method_has_its_price_and_the_sandbox_asks_the_same() -> None:
    assert {method.name for method in METHODS} == PRICES.keys()
    assert {name: sandbox.PRICES[name] for name in PRICES} == PRICES
    assert Terms().per_minute == 6_000


@pytest.mark.parametrize("id", ["", "..", "18c2/modify", "18c2?x=1", "a b", "18c2\r\nX: y"])
def test_an_id_that_would_change_the_address_is_refused(id: str) -> None:
    for make in (
        calls.get_message,
        calls.trash_message,
        calls.get_draft,
        calls.send_draft,
        calls.get_thread,
    ):
        with pytest.raises(BadInput, match="is not an id of Gmail"):
            make(id)


def test_more_than_google_takes_is_refused() -> None:
    with pytest.raises(BadInput, match="1 to 500"):
        calls.list_messages("", [], None, 501, False)
    with pytest.raises(BadInput, match="at most"):
        calls.create_draft(b"x" * (LARGEST_SENT + 1))
    with pytest.raises(BadInput, match="valid Unicode"):
        calls.create_label("half \ud83d", "labelShow", "show")


def test_a_large_mail_is_uploaded_beside_the_json() -> None:
    small, large = calls.create_draft(b"x" * LARGEST_IN_JSON), calls.create_draft(b"x" * (LARGEST_IN_JSON + 1), "18c0")
    assert not small.is_upload
    assert large.is_upload
    assert large.parameters == {"uploadType": "multipart"}
    assert large.content is not None
    assert b'{"threadId":"18c0"}' in large.content
