"""Gmail's settings in the emulator: filters that apply to new mail, the vacation responder, send-as addresses."""

from collections.abc import AsyncIterator
from itertools import permutations
from random import Random
from typing import Any

import pytest

from postroom_sandbox.filters import MOST_FILTERS, Action, Criteria
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.methods import MODIFY, READONLY
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, TOKEN, Sandbox, raw_mail, running_sandbox

FILTERS = "/settings/filters"


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock) as running:
        yield running


async def label(sandbox: Sandbox, name: str) -> str:
    return (await sandbox.json("POST", "/labels", json={"name": name}))["id"]


async def arrived(sandbox: Sandbox, raw: bytes, **query: str) -> frozenset[str]:
    """The labels of a mail that is delivered now."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = await sandbox.http.post(f"{sandbox.url}/sandbox/messages", content=raw, headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return frozenset(answer.json()["labelIds"])


async def test_a_filter_is_created_read_and_deleted(sandbox: Sandbox) -> None:
    receipts = await label(sandbox, "Receipts")
    wanted = {
        "criteria": {
            "from": "shop@store.example",
            "subject": "  your   receipt ",
            "size": 1,
            "sizeComparison": "larger",
        },
        "action": {"addLabelIds": [receipts, "STARRED"], "removeLabelIds": ["INBOX"], "forward": ""},
    }
    created = await sandbox.json("POST", FILTERS, json=wanted)
    assert created["criteria"] == {**wanted["criteria"], "subject": "your receipt"}
    assert created["action"] == {"addLabelIds": [receipts, "STARRED"], "removeLabelIds": ["INBOX"]}
    assert (await sandbox.json("GET", FILTERS))["filter"] == [created]
    assert await sandbox.json("GET", f"{FILTERS}/{created['id']}") == created
    assert (await sandbox.ask("DELETE", f"{FILTERS}/{created['id']}")).status_code == 204
    for verb in ("GET", "DELETE"):
        answer = await sandbox.ask(verb, f"{FILTERS}/{created['id']}")
        assert answer.status_code == 404
        assert answer.json()["error"]["message"] == "Requested entity was not found."


ARCHIVE = {"removeLabelIds": ["INBOX"]}


@pytest.mark.parametrize(
    ("criteria", "action", "message", "reason"),
    [
        ({}, ARCHIVE, "A filter needs criteria", "invalidArgument"),
        ({"sizeComparison": "unspecified"}, ARCHIVE, "A filter needs criteria", "invalidArgument"),
        ({"from": "a"}, {}, "A filter needs an action", "invalidArgument"),
        ({"from": "a"}, {"addLabelIds": ["Dianne"]}, "Invalid label: Dianne", "invalidArgument"),
        ({"from": "a"}, {"addLabelIds": ["SPAM"]}, "Invalid label SPAM in AddLabelIds", "invalidArgument"),
        (
            {"from": "a"},
            {"removeLabelIds": ["CATEGORY_SOCIAL"]},
            "Invalid label(s) CATEGORY_SOCIAL in RemoveLabelIds",
            "invalidArgument",
        ),
        (
            {"from": "a"},
            {"removeLabelIds": ["Label_1"]},
            "Invalid label(s) Label_1 in RemoveLabelIds",
            "invalidArgument",
        ),
        (
            {"from": "a"},
            {"addLabelIds": ["Label_1", "Label_2"]},
            "A filter adds at most one user-defined label",
            "invalidArgument",
        ),
        ({"from": "a"}, {"forward": "x@y.example"}, "Unrecognized forwarding address", "failedPrecondition"),
        ({"from": "a"}, {"forward": "@"}, "Unrecognized forwarding address", "failedPrecondition"),
        ({"from": "known"}, ARCHIVE, "Filter already exists", "failedPrecondition"),
        ({"query": "after:never"}, ARCHIVE, "Invalid date in search: never", "invalidArgument"),
        ({"from": 7}, ARCHIVE, "Invalid value at 'from' (TYPE_STRING)", "invalidArgument"),
        ({"size": "7"}, ARCHIVE, "Invalid value at 'size' (TYPE_INT32)", "invalidArgument"),
        ({"hasAttachment": "yes"}, ARCHIVE, "Invalid value at 'hasAttachment' (TYPE_BOOL)", "invalidArgument"),
        (
            {"size": 7, "sizeComparison": "equal"},
            ARCHIVE,
            "Invalid value at 'filter.criteria.size_comparison' (TYPE_ENUM), \"equal\"",
            "invalidArgument",
        ),
        (
            {"sender": "a"},
            ARCHIVE,
            'Invalid JSON payload received. Unknown name "sender": Cannot find field.',
            "invalidArgument",
        ),
    ],
)
async def test_a_filter_that_gmail_would_refuse_is_refused(
    sandbox: Sandbox, criteria: dict[str, Any], action: dict[str, Any], message: str, reason: str
) -> None:
    await label(sandbox, "One")
    await label(sandbox, "Two")
    await sandbox.json("POST", FILTERS, json={"criteria": {"from": "known"}, "action": ARCHIVE})
    answer = await sandbox.ask("POST", FILTERS, json={"criteria": criteria, "action": action})
    assert answer.status_code == 400
    error = answer.json()["error"]
    status = {"invalidArgument": "INVALID_ARGUMENT", "failedPrecondition": "FAILED_PRECONDITION"}[reason]
    assert (error["message"], error["status"]) == (message, status)
    assert error["errors"] == [{"message": message, "domain": "global", "reason": reason}]
    assert len((await sandbox.json("GET", FILTERS))["filter"]) == 1


async def test_there_are_at_most_a_thousand_filters(sandbox: Sandbox) -> None:
    for number in range(MOST_FILTERS):
        sandbox.mailbox.filters.create(Criteria(sender=f"sender-{number}"), Action(remove=("INBOX",)))
    answer = await sandbox.ask("POST", FILTERS, json={"criteria": {"from": "last"}, "action": ARCHIVE})
    assert answer.status_code == 400
    assert await arrived(sandbox, raw_mail(sender="sender-999@x.example")) == {"UNREAD"}


async def test_filters_need_the_scope_for_settings(sandbox: Sandbox) -> None:
    token = sandbox.emulator.issue_token(scopes=[MODIFY, READONLY]).access_token
    assert (await sandbox.ask("GET", FILTERS, token)).status_code == 200
    for verb, path in (("POST", FILTERS), ("DELETE", f"{FILTERS}/x"), ("PUT", "/settings/vacation")):
        answer = await sandbox.ask(verb, path, token, json={})
        assert answer.status_code == 403
        assert answer.json()["error"]["errors"][0]["reason"] == "insufficientPermissions"


async def test_every_filter_that_matches_applies(sandbox: Sandbox) -> None:
    receipts, shops = await label(sandbox, "Receipts"), await label(sandbox, "Shops")
    for criteria, action in (
        ({"from": "store.example"}, {"addLabelIds": [shops]}),
        ({"subject": "receipt"}, {"addLabelIds": [receipts], "removeLabelIds": ["INBOX"]}),
        ({"query": "larger:1K"}, {"addLabelIds": ["IMPORTANT"]}),
        ({"from": "somebody else"}, {"addLabelIds": ["TRASH"]}),
        ({"query": "receipt"}, {"removeLabelIds": ["UNREAD"]}),
    ):
        await sandbox.json("POST", FILTERS, json={"criteria": criteria, "action": action})
    start = sandbox.mailbox.history_id
    assert await arrived(sandbox, raw_mail("Your receipt", sender="shop@store.example")) == {shops, receipts}
    assert await arrived(sandbox, raw_mail("Hello", sender="shop@store.example")) == {"INBOX", "UNREAD", shops}
    assert await arrived(sandbox, raw_mail("Hello", "x" * 2000)) == {"INBOX", "UNREAD", "IMPORTANT"}
    kinds = [change.kind for change in sandbox.mailbox.changes_since(start)]
    assert kinds == ["messageAdded"] * 3


@pytest.mark.parametrize(
    ("criteria", "matching", "other"),
    [
        ({"from": "ann@b.example"}, raw_mail(sender="Ann <Ann@b.example>"), raw_mail(sender="jo.ann@b.example")),
        ({"from": "a@b.example OR c@d.example"}, raw_mail(sender="c@d.example"), raw_mail(sender="e@d.example")),
        ({"from": "me"}, raw_mail(sender=f"Mara <{OWNER}>"), raw_mail(sender=OTHER)),
        ({"to": "example@"}, raw_mail(To="x@y.org", Cc="example@mail.org"), raw_mail(To="examples@mail.org")),
        ({"to": "list"}, raw_mail(Bcc="list@b.example"), raw_mail(Bcc="playlist@b.example")),
        ({"subject": "two words"}, raw_mail("Here: TWO words"), raw_mail("words, two")),
        ({"subject": "[People with Pets]"}, raw_mail("Re: [People with Pets] cats"), raw_mail("people with a pet")),
        ({"subject": "(one OR two) three"}, raw_mail("three, two"), raw_mail("one two")),
        ({"query": '"my important project"'}, raw_mail(text="of my important\nproject"), raw_mail(text="project my")),
        ({"query": "has:attachment OR is:unread"}, raw_mail(), raw_mail("read")),
        ({"negatedQuery": "secret knock"}, raw_mail(text="nothing"), raw_mail(text="a knock at the door")),
        ({"negatedQuery": '"secret knock"'}, raw_mail(text="knock, secret"), raw_mail(text="a secret knock")),
        ({"size": 2000, "sizeComparison": "larger"}, raw_mail(text="x" * 3000), raw_mail()),
        ({"size": 2000, "sizeComparison": "smaller"}, raw_mail(), raw_mail(text="x" * 3000)),
        ({"query": "list:news.post.example"}, raw_mail(List_Id="News <news.post.example>"), raw_mail()),
        ({"query": "replyto:desk@b.example"}, raw_mail(Reply_To="desk@b.example"), raw_mail(sender="desk@b.example")),
    ],
)
async def test_the_criteria_of_a_filter(
    sandbox: Sandbox, criteria: dict[str, Any], matching: bytes, other: bytes
) -> None:
    await sandbox.json("POST", FILTERS, json={"criteria": criteria, "action": {"addLabelIds": ["STARRED"]}})
    if "is:unread" in str(criteria):
        assert "STARRED" not in await arrived(sandbox, other, labelIds="INBOX")
    else:
        assert "STARRED" not in await arrived(sandbox, other)
    assert "STARRED" in await arrived(sandbox, matching)


async def test_a_filter_sees_what_those_before_it_did(sandbox: Sandbox) -> None:
    seen = await label(sandbox, "Seen")
    star = {"criteria": {"from": OTHER}, "action": {"addLabelIds": ["STARRED"]}}
    mark = {"criteria": {"query": "is:starred"}, "action": {"addLabelIds": [seen]}}
    first = await sandbox.json("POST", FILTERS, json=mark)
    await sandbox.json("POST", FILTERS, json=star)
    assert await arrived(sandbox, raw_mail()) == {"INBOX", "UNREAD", "STARRED"}
    await sandbox.json("DELETE", f"{FILTERS}/{first['id']}")
    await sandbox.json("POST", FILTERS, json=mark)
    assert await arrived(sandbox, raw_mail()) == {"INBOX", "UNREAD", "STARRED", seen}


NEVER_SPAM, SKIP, DELETE = Action(remove=("SPAM",)), Action(remove=("INBOX",)), Action(add=("TRASH",))


@pytest.mark.parametrize(
    ("actions", "arriving", "expected"),
    [
        ([NEVER_SPAM], "SPAM", {"INBOX"}),
        ([NEVER_SPAM], "INBOX", {"INBOX"}),
        ([SKIP], "SPAM", {"SPAM"}),
        ([NEVER_SPAM, SKIP], "SPAM", set[str]()),
        ([NEVER_SPAM, DELETE], "SPAM", {"TRASH"}),
        ([DELETE, SKIP], "INBOX", {"TRASH"}),
    ],
)
def test_spam_inbox_and_trash_in_every_order(
    clock: ManualClock, actions: list[Action], arriving: str, expected: set[str]
) -> None:
    for order in permutations(actions):
        mailbox = Mailbox(OWNER, Random(3), clock=clock)
        for number, action in enumerate(order):
            mailbox.filters.create(Criteria(subject="hello", query="-nothing" * number), action)
        assert mailbox.receive(raw_mail("hello"), [arriving]).labels == expected


async def test_filters_leave_mail_alone_that_is_not_new(sandbox: Sandbox) -> None:
    await arrived(sandbox, raw_mail("before"))
    await sandbox.json("POST", FILTERS, json={"criteria": {"query": "-nothing"}, "action": ARCHIVE})
    sandbox.mailbox.deliver(raw_mail("loaded"))
    assert [message.mail.header("Subject") for message in sandbox.mailbox.search("in:inbox")] == ["loaded", "before"]


async def test_a_deleted_label_leaves_its_filters_without_action(sandbox: Sandbox) -> None:
    receipts = await label(sandbox, "Receipts")
    await sandbox.json("POST", FILTERS, json={"criteria": {"from": "shop"}, "action": {"addLabelIds": [receipts]}})
    await sandbox.json("DELETE", f"/labels/{receipts}")
    assert [each["action"] for each in (await sandbox.json("GET", FILTERS))["filter"]] == [{}]
    assert await arrived(sandbox, raw_mail(sender="shop@store.example")) == {"INBOX", "UNREAD"}


async def test_a_filter_forwards_once_even_if_both_mailboxes_do(sandbox: Sandbox) -> None:
    other = sandbox.emulator.add(Mailbox(OTHER, Random(4), clock=sandbox.clock)).mailbox
    for mailbox, target in ((sandbox.mailbox, OTHER), (other, OWNER)):
        mailbox.filters.forwarding.add(target)
        mailbox.filters.create(Criteria(subject="news"), Action(forward=target))
    await arrived(sandbox, raw_mail("news", sender="x@y.example"))
    (copy,) = other.search()
    assert copy.mail.header("X-Forwarded-For") == f"{OWNER} {OTHER}"
    assert copy.mail.header("From") == "x@y.example"
    assert len(sandbox.mailbox) == 2, "the other mailbox forwards it back once, and there it ends"
    await arrived(sandbox, raw_mail("news"), labelIds="SPAM")
    assert len(other) == 1, "spam is not forwarded"


async def test_an_address_is_verified_by_the_control_api(sandbox: Sandbox) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    url = f"{sandbox.url}/sandbox/forwardingAddresses"
    assert (await sandbox.http.post(url, json={"forwardingEmail": "x"}, headers=headers)).status_code == 400
    answer = await sandbox.http.post(url, json={"forwardingEmail": "X@y.example"}, headers=headers)
    assert answer.json() == {"forwardingAddresses": ["x@y.example"]}
    wanted = {"criteria": {"from": "a"}, "action": {"forward": "x@y.example"}}
    assert (await sandbox.json("POST", FILTERS, json=wanted))["action"] == {"forward": "x@y.example"}


OFF = {"enableAutoReply": False, "restrictToContacts": False, "restrictToDomain": False}


async def test_the_vacation_responder_is_set_as_a_whole(sandbox: Sandbox) -> None:
    assert await sandbox.json("GET", "/settings/vacation") == OFF
    away = {
        "enableAutoReply": True,
        "responseSubject": "Away",
        "responseBodyPlainText": "Back on Monday",
        "startTime": "1795000000000",
        "endTime": 1796000000000,
        "restrictToContacts": True,
    }
    shown = {**OFF, **away, "endTime": "1796000000000"}
    assert await sandbox.json("PUT", "/settings/vacation", json=away) == shown
    assert await sandbox.json("GET", "/settings/vacation") == shown
    assert await sandbox.json("PUT", "/settings/vacation", json={"responseSubject": "x"}) == {
        **OFF,
        "responseSubject": "x",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"enableAutoReply": True},
        {"enableAutoReply": "true", "responseSubject": "x"},
        {"startTime": "2", "endTime": "1"},
        {"startTime": "2", "endTime": "2"},
        {"startTime": "tomorrow"},
        {"startTime": True},
        {"responseSubject": ["x"]},
        {"subject": "x"},
    ],
)
async def test_a_vacation_that_gmail_would_refuse_changes_nothing(sandbox: Sandbox, wrong: dict[str, Any]) -> None:
    answer = await sandbox.ask("PUT", "/settings/vacation", json=wrong)
    assert answer.status_code == 400
    assert answer.json()["error"]["errors"][0]["reason"] == "invalidArgument"
    assert await sandbox.json("GET", "/settings/vacation") == OFF


async def test_one_send_as_address_is_shown_as_in_the_list(sandbox: Sandbox) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    alias = {"sendAsEmail": "m@alias.example", "displayName": "M"}
    await sandbox.http.post(f"{sandbox.url}/sandbox/sendAs", json=alias, headers=headers)
    for each in (await sandbox.json("GET", "/settings/sendAs"))["sendAs"]:
        assert await sandbox.json("GET", f"/settings/sendAs/{each['sendAsEmail'].upper()}") == each
    assert (await sandbox.ask("GET", "/settings/sendAs/nobody@alias.example")).status_code == 404
