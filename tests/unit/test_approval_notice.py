"""What a person sees before they answer, whatever the mail tries to make them see."""

from dataclasses import replace
from typing import Any

import pytest

from postroom.core.actions.action import ACTION_TYPES, ActionType
from postroom.triage.act.approval_notice import notice_of, one_line, what_is_done, whole_content
from support.approvals import WAITING


def test_a_notice_says_what_to_whom_why_and_until_when():
    notice = notice_of(WAITING)
    assert (notice.what, notice.to_whom) == ("forward", ("a@example.com", "b@example.com"))
    assert (notice.sender, notice.subject, notice.content) == ("shop@store.example", "Your bill", "look")
    assert notice.decided_by == "small, 55% sure"
    assert notice.why == ("it is about money", "forward cannot be undone")
    assert notice.expires_at == WAITING.expires_at
    assert notice.answer is None


def test_an_answer_names_the_address_it_goes_to_and_is_shown():
    reply = replace(WAITING, action_type="auto_reply", parameters={"text": "Thanks.\nBye.", "subject": "Re"})
    notice = notice_of(reply)
    assert notice.to_whom == ("help@store.example",)
    assert notice.content == "Subject: Re\nThanks.\nBye."


@pytest.mark.parametrize(
    ("is_whole", "changes"),
    [
        (True, {}),
        (True, {"rationale": "x" * 500}),
        (True, {"parameters": {"to": [f"r{n}@example.com" for n in range(10)]}}),
        (False, {"parameters": {"to": [f"r{n}@example.com" for n in range(11)]}}),
        (False, {"parameters": {"to": f"{'r' * 80}@example.com"}}),
        (True, {"action_type": "auto_reply", "parameters": {"text": "x" * 700}}),
        (False, {"action_type": "auto_reply", "parameters": {"text": "x" * 701}}),
        (False, {"action_type": "auto_reply", "parameters": {"text": f"Yes.{' ' * 3000}Send money."}}),
        (False, {"action_type": "auto_reply", "parameters": {"text": "Yes.", "html": "<p>No.</p>"}}),
        (False, {"action_type": "apply_label", "parameters": {"label": "x" * 201}}),
        (False, {"sender": f"{'Boss ' * 50}<eve@example.com>"}),
        (False, {"subject": "x" * 201}),
    ],
)
def test_a_notice_is_whole_when_nothing_of_what_would_be_done_is_missing(is_whole: bool, changes: dict[str, Any]):
    assert notice_of(replace(WAITING, **changes)).is_whole is is_whole


def test_what_reaches_nobody_names_nobody():
    assert notice_of(replace(WAITING, action_type="delete", parameters={})).to_whom == ()


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_every_action_has_words(action: ActionType):
    given: dict[str, Any] = {"label": "Receipts", "amount": 2, "units": "days"}
    said = what_is_done(replace(WAITING, action_type=action, parameters=given))
    assert said
    assert "_" not in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"actor": "rule", "rule_name": "bills"}, "the rule 'bills'"),
        ({"actor": "agent", "asked_by": "token:7"}, "an agent without a name (token 7)"),
        ({"actor": "agent", "asked_by": "token:7", "agent": "assistant"}, "the agent 'assistant'"),
        ({"actor": "user", "asked_by": "cli:ada"}, "cli:ada"),
    ],
)
def test_who_decided_is_named(changes: dict[str, Any], words: str):
    assert notice_of(replace(WAITING, **changes)).decided_by == words


@pytest.mark.parametrize(
    ("state", "approved_by", "error", "words"),
    [
        ("queued", "cli:ada", None, "approved by cli:ada"),
        ("completed", "cli:ada", None, "approved by cli:ada"),
        ("rejected", None, "rejected by cli:ada", "rejected: rejected by cli:ada"),
        ("expired", None, "it was not approved in time", "expired: it was not approved in time"),
    ],
)
def test_the_answer_is_reported_when_there_is_one(state: str, approved_by: str | None, error: str | None, words: str):
    assert notice_of(replace(WAITING, state=state, approved_by=approved_by, error=error)).answer == words


@pytest.mark.parametrize(
    "hostile", ["a\nb", "a\r\nb", "a\u2028b", "a\u202eb", "a\u200bb", "a\x1b[2Jb", "a\x00b", "a\ud800b", "a\ue000b"]
)
def test_nothing_hides_in_a_line(hostile: str):
    shown = one_line(hostile)
    assert shown.isprintable()
    assert shown.startswith("a ")


def test_a_long_line_is_cut_and_says_so():
    assert one_line("x" * 1000, 10) == "xxxxxxxxxx… (990 more characters)"


def test_the_whole_content_is_there_for_pages_that_have_room() -> None:
    text = "first\n\u202esecond\n" + "W" * 2_000
    replying = replace(WAITING, action_type="auto_reply", parameters={"subject": "Re", "text": text})
    assert whole_content(replying, 10_000) == "Subject: Re\nfirst\nsecond\n" + "W" * 2_000
    assert whole_content(replace(WAITING, action_type="trash", parameters={}), 10_000) == ""
