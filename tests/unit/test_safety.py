"""What automation may do by itself, what needs approval, and what is never done."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.actions.action import ACTION_TYPES, IRREVERSIBLE, ActionType
from postroom.core.actions.safety import (
    Policy,
    Proposed,
    Protected,
    Ruling,
    SafetyFacts,
    Source,
    safety_ruling,
    why_agent_may_not_undo,
)

SOURCES: tuple[Source, ...] = get_args(Source)
AROUND = SafetyFacts("ann@shop.example", frozenset({"INBOX", "Label_1", "Work"}))
PROPOSED = st.builds(
    Proposed,
    st.sampled_from(ACTION_TYPES),
    st.just({}),
    st.floats(0, 1),
    st.sampled_from(SOURCES),
    st.booleans(),
)
POLICIES = st.builds(
    Policy,
    st.floats(0, 1),
    st.floats(0, 1),
    st.frozensets(st.sampled_from(ACTION_TYPES)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)


def ruling(
    action: str, source: Source = "rule", confidence: float = 1.0, around: SafetyFacts = AROUND, **policy: object
):
    return safety_ruling(Proposed(action, {}, confidence, source), around, Policy(**policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("action", sorted(set(ACTION_TYPES) - IRREVERSIBLE))
def test_what_can_be_undone_and_is_sure_is_allowed(action: str) -> None:
    assert ruling(action).verdict == "allow"


@pytest.mark.parametrize("action", sorted(IRREVERSIBLE))
def test_what_cannot_be_undone_waits_for_a_person(action: str) -> None:
    assert ruling(action).verdict == "approve"
    assert "cannot be undone" in ruling(action).reasons[0]


@given(PROPOSED, POLICIES)
def test_nothing_irreversible_is_done_without_a_person_unless_the_user_trusts_the_rule(
    proposed: Proposed, policy: Policy
) -> None:
    verdict = safety_ruling(proposed, AROUND, policy).verdict
    if proposed.action_type in IRREVERSIBLE and proposed.source != "user" and verdict == "allow":
        assert policy.trust_rules
        assert proposed.source == "rule"
        assert proposed.action_type != "delete"


@given(PROPOSED, POLICIES)
def test_protected_mail_is_never_touched_whoever_asks(proposed: Proposed, policy: Policy) -> None:
    for protected in (
        Protected(senders=frozenset({"ann@shop.example"})),
        Protected(domains=frozenset({"shop.example"})),
        Protected(labels=frozenset({"work"})),
    ):
        around = SafetyFacts("Ann@Shop.example", AROUND.labels, protected)
        assert safety_ruling(proposed, around, policy).verdict == "refuse"


def test_a_protected_domain_covers_its_subdomains_and_no_lookalike() -> None:
    protected = Protected(domains=frozenset({"shop.example"}))
    assert protected.reason("a@mail.shop.example", frozenset()) is not None
    assert protected.reason("a@notshop.example", frozenset()) is None


@pytest.mark.parametrize("source", ["model", "agent"])
def test_only_the_users_own_words_name_who_mail_is_forwarded_to(source: Source) -> None:
    assert ruling("forward", source).verdict == "refuse"


def test_no_answer_is_sent_where_none_may_be() -> None:
    around = SafetyFacts("list@x.example", frozenset(), no_answer="it came through a mailing list")
    assert ruling("auto_reply", around=around).reasons == ("it came through a mailing list",)


@pytest.mark.parametrize(
    ("action", "confidence", "verdict"),
    [("archive", 0.69, "approve"), ("archive", 0.7, "allow"), ("trash", 0.89, "approve"), ("trash", 0.9, "allow")],
)
def test_a_model_that_is_not_sure_asks(action: str, confidence: float, verdict: str) -> None:
    assert ruling(action, "model", confidence).verdict == verdict


def test_what_is_on_the_users_list_asks() -> None:
    assert ruling("archive", always_approve=frozenset({"archive"})).verdict == "approve"


def test_who_asks_for_approval_gets_it() -> None:
    proposed = Proposed("archive", {}, 1.0, "model", needs_approval=True)
    assert safety_ruling(proposed, AROUND, Policy()).verdict == "approve"


def test_agents_propose_and_people_approve() -> None:
    assert ruling("archive", "agent").verdict == "approve"
    assert ruling("archive", "agent", trust_agents=True).verdict == "allow"
    assert ruling("delete", "agent", trust_agents=True).verdict == "approve"


@pytest.mark.parametrize("parameter", ["cc", "attachments"])
@pytest.mark.parametrize("action", ["auto_reply", "forward"])
def test_copies_and_files_go_only_where_the_users_own_words_say(action: ActionType, parameter: str) -> None:
    for source in SOURCES:
        reasons = safety_ruling(Proposed(action, {parameter: ["x"]}, 1.0, source), AROUND, Policy()).reasons
        refused = "copies and files are sent only by the user's own rules" in reasons
        assert refused == (source in ("model", "agent"))


def test_a_trusted_agent_applies_no_label_that_does_not_exist() -> None:
    new = replace(AROUND, new_label="there is no label 'Taxes'")
    assert ruling("apply_label", "agent", around=new, trust_agents=True) == Ruling("approve", (new.new_label or "",))
    assert ruling("apply_label", "agent", trust_agents=True).verdict == "allow"
    assert ruling("apply_label", around=new).verdict == "allow", "a rule is the user's own word"


@pytest.mark.parametrize(("done", "verdict"), [(0, "allow"), (2, "allow"), (3, "approve"), (4, "approve")])
def test_a_trusted_agent_has_its_share_of_each_hour(done: int, verdict: str) -> None:
    around = replace(AROUND, agent_actions_this_hour=done)
    assert ruling("archive", "agent", around=around, trust_agents=True, agent_hourly_cap=3).verdict == verdict
    assert ruling("archive", around=around, agent_hourly_cap=3).verdict == "allow", "rules have no such share"


def test_an_hour_of_which_nothing_is_known_has_all_of_its_share() -> None:
    assert ruling("auto_reply", trust_rules=True, hourly_cap=1).verdict == "allow"
    assert ruling("archive", "agent", trust_agents=True, agent_hourly_cap=1).verdict == "allow"


def test_without_a_word_of_the_user_agents_and_rules_have_twenty_an_hour() -> None:
    assert (Policy().hourly_cap, Policy().agent_hourly_cap) == (20, 20)


def test_a_label_is_protected_by_the_ids_that_its_name_stood_for() -> None:
    protected = Protected(label_ids={"Label_7": "legal"})
    assert protected.reason("a@b.example", frozenset({"INBOX", "Label_7"})) == "the label 'legal' is protected"
    assert protected.reason("a@b.example", frozenset({"INBOX", "Label_8"})) is None


def test_labels_have_to_be_known_when_one_is_protected_by_name_or_by_id() -> None:
    assert Protected(labels=frozenset({"legal"})).names_labels
    assert Protected(label_ids={"Label_7": "legal"}).names_labels
    assert not Protected(frozenset({"a@b.example"}), frozenset({"b.example"})).names_labels


def test_a_trusted_rule_may_answer_and_forward_within_the_hours_share() -> None:
    assert ruling("auto_reply", trust_rules=True).verdict == "allow"
    assert ruling("delete", trust_rules=True).verdict == "approve"
    busy = SafetyFacts("a@b.example", frozenset(), irreversible_this_hour=20)
    assert ruling("auto_reply", around=busy, trust_rules=True).verdict == "approve"


def test_an_answer_that_would_go_elsewhere_waits_also_for_a_trusted_rule() -> None:
    diverted = SafetyFacts("a@b.example", frozenset(), answers_elsewhere=True)
    assert ruling("auto_reply", around=diverted, trust_rules=True).verdict == "approve"
    assert ruling("archive", around=diverted).verdict == "allow"


def test_a_person_needs_no_approval() -> None:
    assert ruling("delete", "user").verdict == "allow"


@pytest.mark.parametrize(
    ("actor", "asked_by", "approved_by", "trusted", "reason"),
    [
        ("agent", "helper", None, False, None),
        ("agent", "other", None, False, "did not propose"),
        ("agent", None, None, False, "did not propose"),
        ("agent", "helper", "mara", False, "a person approved"),
        ("agent", "other", "mara", True, None),
        ("rule", None, None, True, None),
        ("user", "helper", None, True, "the user requested"),
    ],
)
def test_an_agent_undoes_its_own_or_everything_but_the_users_when_it_is_trusted(
    actor: str, asked_by: str | None, approved_by: str | None, trusted: bool, reason: str | None
) -> None:
    said = why_agent_may_not_undo("helper", actor, asked_by, approved_by, Policy(trust_agents=trusted))
    assert (said is None) == (reason is None)
    assert reason is None or reason in (said or "")
