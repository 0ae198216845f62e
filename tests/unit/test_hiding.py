"""What takes mail out of sight, which mail automation leaves in sight, and how much it may hide."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from postroom.core.actions.action import ACTION_TYPES
from postroom.core.actions.hiding import HiddenSoFar, HidingLimits, cap_reached, hides
from postroom.core.actions.safety import Policy, Proposed, SafetyFacts, Source, safety_ruling
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.in_sight import why_kept_in_sight

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)
FOLDERS = frozenset({"folder:Receipts", "receipts"})
MAIL = MessageFacts("ida@shop.example", "Hello", (("From", "ida@shop.example"),), frozenset({"INBOX"}), "Hello there")


def mail(sender: str, subject: str) -> MessageFacts:
    headers = (("From", sender), ("Subject", subject))
    return replace(MAIL, sender=sender, subject=subject, headers=headers)


ALWAYS = {"archive", "trash", "mark_read"}


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_archive_trash_and_mark_read_hide_and_other_actions_do_not(action: str) -> None:
    parameters = {"amount": 7, "units": "days"} if action == "snooze" else {"label": "Travel"}
    assert hides(action, parameters, FOLDERS, NOW) == (action in ALWAYS)


@pytest.mark.parametrize(
    ("parameters", "is_hidden"),
    [
        ({"amount": 7, "units": "days"}, False),
        ({"amount": 169, "units": "hours"}, True),
        ({"amount": 365, "units": "days"}, True),
        ({"until": "2026-11-22T08:00:00Z"}, False),
        ({"until": "2026-11-22T08:00:01Z"}, True),
    ],
)
def test_a_snooze_beyond_a_week_hides(parameters: dict[str, Any], is_hidden: bool) -> None:
    assert hides("snooze", parameters, FOLDERS, NOW) == is_hidden


@pytest.mark.parametrize("label", ["Receipts", "RECEIPTS", "folder:Receipts"])
def test_a_label_that_is_a_folder_takes_the_message_out_of_the_inbox(label: str) -> None:
    assert hides("apply_label", {"label": label}, FOLDERS, NOW)


@pytest.mark.parametrize("label", ["Receipts", "folder:Receipts"])
def test_a_message_that_leaves_its_folder_goes_to_the_archive(label: str) -> None:
    assert hides("remove_label", {"label": label}, FOLDERS, NOW)


def test_several_actions_hide_if_one_of_them_does() -> None:
    steps = [{"action": "star", "parameters": {}}, {"action": "mark_read", "parameters": {}}]
    assert hides("several", {"actions": steps}, FOLDERS, NOW)
    assert not hides("several", {"actions": steps[:1]}, FOLDERS, NOW)


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (replace(MAIL, sender_in_contacts=True), "contacts"),
        (replace(MAIL, reply_to_mine=True), "answers a message of yours"),
        (replace(MAIL, subject="New sign-in to your account"), "security"),
        (replace(MAIL, body_text="Ihr Bestätigungscode: 482913"), "security"),
        (mail("billing@bank.example", "Your bank statement for October is ready"), "finance"),
        (replace(MAIL, categories=frozenset({"finance"})), "finance"),
        (mail("lab@clinic.example", "Your blood test results"), "health"),
    ],
)
def test_mail_that_only_its_owner_hides(kept: MessageFacts, why: str) -> None:
    assert why in (why_kept_in_sight(kept, "default") or "")


def test_other_mail_may_be_hidden_and_the_highest_tier_is_that_of_contacts() -> None:
    assert why_kept_in_sight(MAIL, "default") is None
    assert why_kept_in_sight(MAIL, "interactive") is None
    assert "contacts" in (why_kept_in_sight(MAIL, "high_priority") or "")


@pytest.mark.parametrize(("source", "verdict"), [("model", "refuse"), ("agent", "refuse"), ("rule", "allow")])
@pytest.mark.parametrize("confidence", [0.2, 1.0])
def test_what_a_model_or_an_agent_may_not_hide_is_refused_and_nobody_is_asked(
    source: Source, verdict: str, confidence: float
) -> None:
    facts = SafetyFacts("ida@shop.example", frozenset(), hides=True, kept_in_sight="it is from one of your contacts")
    sure = 1.0 if source == "rule" else confidence
    for policy in (Policy(), Policy(trust_agents=True, trust_rules=True)):
        ruling = safety_ruling(Proposed("archive", {}, sure, source), facts, policy)
        assert ruling.verdict == verdict
        assert ruling.reasons == (() if verdict == "allow" else ("it is from one of your contacts",))
    assert safety_ruling(Proposed("archive", {}, 1.0, "user"), facts, Policy()).verdict == "allow"


def test_only_hiding_without_approval_is_counted() -> None:
    facts = SafetyFacts("ida@shop.example", frozenset(), hides=True)
    assert safety_ruling(Proposed("archive", {}, 0.9, "model"), facts, Policy()).hides
    assert not safety_ruling(Proposed("archive", {}, 0.5, "model"), facts, Policy()).hides
    assert not safety_ruling(Proposed("star", {}, 0.9, "model"), replace(facts, hides=False), Policy()).hides


@pytest.mark.parametrize(
    ("hidden", "reason"),
    [
        (HiddenSoFar(4, 29, 199), None),
        (HiddenSoFar(5, 5, 5), "the limit of 5 hidden messages of one sender a day is reached"),
        (HiddenSoFar(0, 30, 30), "the limit of 30 hidden messages an hour is reached"),
        (HiddenSoFar(0, 0, 200), "the limit of 200 hidden messages a day is reached"),
    ],
)
def test_the_limits_are_five_of_a_sender_and_thirty_an_hour_and_two_hundred_a_day(
    hidden: HiddenSoFar, reason: str | None
) -> None:
    found = cap_reached(hidden, HidingLimits())
    assert found is None if reason is None else reason in (found or "")


def test_the_day_of_the_caps_begins_at_the_owners_midnight() -> None:
    policy = Policy(zone=ZoneInfo("America/Los_Angeles"))
    assert policy.hiding_caps(NOW).day_began == datetime(2026, 11, 15, 8, tzinfo=UTC)
    assert policy.hiding_caps(NOW.replace(hour=7)).day_began == datetime(2026, 11, 14, 8, tzinfo=UTC)
