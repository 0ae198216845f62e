"""How the user's answer rates a decision, and what makes a rule worth proposing."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import ACTION_TYPES, SENDING, ActionType, label_change
from postroom.core.actions.label_changes import LabelChange
from postroom.core.actions.undo import undo_hint
from postroom.core.rules.agreement import OwnerLabelChange, PastAction, agreement, how_reversed, is_ours
from postroom.core.rules.draft import RuleDraft, as_document, read_draft
from postroom.core.rules.learning import (
    HandledMessage,
    Origin,
    OwnerChange,
    ReversedDecision,
    RuleSuggestion,
    exception_for,
    list_of,
    merged,
    repeated,
)

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
ACCOUNT = UUID(int=1)
OWN = {"Label_1": "Receipts", "Label_2": "Travel"}
IDS = ["INBOX", "UNREAD", "STARRED", "TRASH", "SPAM", "Label_1", "Label_2", "IMPORTANT"]
sets = st.frozensets(st.sampled_from(IDS))
RELABELS = tuple(each for each in ACTION_TYPES if each not in SENDING and each != "delete")


def moved_by(before: frozenset[str], after: frozenset[str]) -> OwnerLabelChange:
    return OwnerLabelChange(after - before, before - after)


@given(sets, st.sampled_from(RELABELS))
def test_who_does_what_was_decided_agrees(before: frozenset[str], action: ActionType) -> None:
    change = label_change(action, "Label_1").effective(before)
    judgement = agreement(action, "Label_1", moved_by(before, change.applied_to(before)), OWN)
    # A snooze leaves no trace, and where nothing changes there is nothing to see.
    assert judgement is None or judgement.agreed or (action == "snooze")
    if change and action != "snooze" and not (action == "archive" and before & {"TRASH", "SPAM"}):
        assert judgement is not None


@given(st.sampled_from(ACTION_TYPES), sets, sets, st.booleans())
def test_whatever_the_user_does_there_is_an_answer_or_none(
    action: ActionType, added: frozenset[str], removed: frozenset[str], deleted: bool
) -> None:
    moved = OwnerLabelChange(added - removed, removed - added, deleted)
    judgement = agreement(action, None, moved, OWN)
    assert judgement is None or judgement.what


@given(sets, st.sampled_from([each for each in RELABELS if each not in ("mark_unread", "snooze")]))
def test_an_action_reversed_whole_is_taken_back_and_one_that_changed_nothing_is_not(
    before: frozenset[str], action: ActionType
) -> None:
    change = label_change(action, "Label_1").effective(before)
    done = PastAction(action, NOW - timedelta(hours=1), undo_hint(action, before, change))
    what = how_reversed(done, moved_by(change.applied_to(before), before), NOW)
    assert (what is not None) == bool(change)


def test_what_is_changed_weeks_later_is_no_answer_to_an_action() -> None:
    hint = undo_hint("archive", frozenset({"INBOX"}), LabelChange(remove=frozenset({"INBOX"})))
    back = OwnerLabelChange(frozenset({"INBOX"}))
    assert how_reversed(PastAction("archive", NOW - timedelta(days=13), hint), back, NOW)
    assert how_reversed(PastAction("archive", NOW - timedelta(days=15), hint), back, NOW) is None
    assert how_reversed(PastAction("archive", NOW, hint), OwnerLabelChange(frozenset({"UNREAD"})), NOW) is None


@pytest.mark.parametrize(("action", "answer"), [("mark_read", "marked it as unread"), ("archive", None)])
def test_to_have_it_unread_again_answers_only_an_action_that_was_about_that(
    action: ActionType, answer: str | None
) -> None:
    hint = undo_hint(action, frozenset({"INBOX", "UNREAD"}), LabelChange(remove=frozenset({"INBOX", "UNREAD"})))
    done = PastAction(action, NOW, hint)
    assert how_reversed(done, OwnerLabelChange(frozenset({"UNREAD"})), NOW + timedelta(hours=1)) == answer
    assert (
        how_reversed(done, OwnerLabelChange(frozenset({"INBOX"})), NOW + timedelta(hours=1))
        == "moved it back to the inbox"
    )


def test_what_happens_while_we_act_may_be_ours() -> None:
    moved = OwnerLabelChange(frozenset({"INBOX"}))
    assert is_ours(moved, [PastAction("archive", None, {})], NOW)
    assert is_ours(moved, [PastAction("archive", NOW - timedelta(seconds=9), {})], NOW)
    assert not is_ours(moved, [PastAction("archive", NOW - timedelta(seconds=11), {})], NOW)
    slept = {"snooze_until": NOW.isoformat(), "snooze_label_id": "Label_9"}
    wake = OwnerLabelChange(frozenset({"INBOX"}), frozenset({"Label_9"}))
    then = NOW - timedelta(days=1)
    assert is_ours(wake, [PastAction("snooze", then, slept)], NOW)
    assert not is_ours(wake, [PastAction("snooze", then, slept)], NOW - timedelta(minutes=1))
    assert not is_ours(
        OwnerLabelChange(frozenset({"TRASH"}), frozenset({"Label_9"})), [PastAction("snooze", then, slept)], NOW
    )


@pytest.mark.parametrize(
    ("value", "id"),
    [
        ("Chess <chess.club.example>", "chess.club.example"),
        ("<A.B>", "a.b"),
        ("plain.example", "plain.example"),
        ("<a b>", ""),
        ("<a\x1bb>", ""),
        ("<a@b.example>", ""),
        ("<" + "x" * 10_000 + ">", "x" * 255),
        ("", ""),
        ("<", ""),
    ],
)
def test_a_list_is_known_by_its_id_alone(value: str, id: str) -> None:
    assert list_of((("From", "a@b.example"), ("List-ID", value))) == id
    assert list_of((("From", "a@b.example"),)) == ""


def handled(number: int, sender: str, **more: Any) -> HandledMessage:
    origin = Origin(sender, sender.rpartition("@")[2], more.pop("list_id", ""))
    arrived = frozenset({"INBOX", "UNREAD"})
    return HandledMessage(
        UUID(int=number), origin, arrived, more.pop("labels", frozenset()), False, more.pop("touched", False)
    )


@given(st.text(min_size=1, max_size=300), st.text(max_size=300))
def test_whatever_an_address_or_a_list_holds_a_proposal_makes_a_rule_or_there_is_none(
    sender: str, list_id: str
) -> None:
    recent = [handled(number, sender, list_id=list_id) for number in range(3)]
    reversal = ReversedDecision(
        UUID(int=7), UUID(int=8), recent[0].origin, "archive", "put it back", OwnerLabelChange(), sender, {}, 5
    )
    found = [
        repeated(ACCOUNT, OwnerChange("archive"), recent[0].origin, recent, OWN),
        exception_for(ACCOUNT, reversal, OWN),
    ]
    for each in found:
        if each is not None:
            read_draft(as_document(each.draft))


def test_the_same_rule_has_one_fingerprint_and_gathers_its_evidence() -> None:
    draft = RuleDraft("x", {"sender_email": "a@b.example"}, "archive")
    one = RuleSuggestion(ACCOUNT, draft, {"messages": ["1"], "count": 1})
    other = RuleSuggestion(ACCOUNT, RuleDraft("y", {"sender_email": "a@b.example"}, "archive", priority=3), {})
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != RuleSuggestion(UUID(int=2), draft, {}).fingerprint
    assert merged({"messages": ["1"], "count": 1}, {"messages": ["1", "2"], "count": 2}) == {
        "messages": ["1", "2"],
        "count": 2,
    }
    many = merged({"messages": [str(n) for n in range(20)], "count": 20}, {"messages": ["a"], "count": 1})
    assert (len(many["messages"]), many["count"]) == (20, 21)


@pytest.mark.parametrize(
    ("deed", "labels"),
    [
        (OwnerChange("trash"), {"TRASH"}),
        (OwnerChange("star"), {"STARRED", "INBOX"}),
        (OwnerChange("apply_label", "Label_2"), {"Label_2"}),
    ],
)
def test_every_deed_that_is_repeated_makes_its_rule(deed: OwnerChange, labels: set[str]) -> None:
    recent = [handled(number, "a@b.example", labels=frozenset(labels)) for number in range(3)]
    found = repeated(ACCOUNT, deed, recent[0].origin, recent, OWN)
    assert found is not None
    assert found.draft.action_type == deed.action_type
    assert found.draft.parameters == ({"label": "Travel"} if deed.label_id else {})
    assert repeated(ACCOUNT, OwnerChange("archive"), recent[0].origin, recent, OWN) is None or deed.label_id
