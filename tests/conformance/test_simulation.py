"""Simulation equals reality: what is predicted over stored mail is what is decided when the rules then run."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postroom.core.actions.safety import Policy
from postroom.core.errors import NotFound
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import ModelDecision
from postroom.store.actions import protection
from postroom.store.actions.decisions import Decision
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import StoredMessage
from postroom.store.mail.simulation import MessageSelection, PastMessage
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.triage.decide import simulate as simulating
from postroom.triage.decide.engine import Advice
from postroom.triage.decide.simulate import (
    ForeseenDecision,
    SimulatedPair,
    SimulatedRules,
    load_context,
    needed_by,
    replay,
)
from postroom.triage.decide.simulated import ChangeOfRules, SimulationRequest, SimulationResult, simulate
from support.scale import scale
from support.store.dump import dump
from support.store.job_setup import JobSetup
from support.store.mail_setup import OWNER, MailSetup, Sample

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
ALL = MessageSelection(LONG_AGO, 1_000_000)
POLICY = Policy(trust_rules=True, hourly_cap=2, always_approve=frozenset({"star"}))
DOMAINS = ("shop.example", "bank.example", "club.example", "airline.example")
WORDS = ("invoice", "offer", "meeting", "flight", "question", "report")
BEFORE = (
    RuleDraft("offers", {"subject_contains": "offer"}, "trash"),
    RuleDraft("club", {"list_id": "chess.club.example"}, "archive", priority=5),
    RuleDraft("bank", {"sender_domain": "bank.example"}, "star"),
)
AFTER = (
    RuleDraft("club", {"and": [{"list_id": "chess"}, {"label_present": "receipts"}]}, "mark_read", priority=5),
    RuleDraft("invoices", {"body_contains": "total due"}, "apply_label", {"label": "Receipts"}, priority=1),
    RuleDraft("to me", {"and": [{"to": OWNER}, {"subject_contains": "report"}]}, "forward", {"to": "b@firm.example"}),
    RuleDraft("away", {"subject_contains": "question"}, "auto_reply", {"text": "I am away."}, priority=60),
    RuleDraft("old", {"older_than": "2d"}, "archive", priority=200),
    RuleDraft("look", {"sender_domain": "shop.example"}, "delete", priority=0, shadow=True),
    RuleDraft("gone", {"and": [{"sender_domain": "shop.example"}, {"subject_contains": "meeting"}]}, "delete"),
    RuleDraft("seen", {"and": [{"sender_seen_before": True}, {"words": "flight"}]}, "mark_read", priority=7),
    RuleDraft("small", {"and": [{"smaller": "2K"}, {"from_words": "bank"}]}, "star", priority=8),
    RuleDraft("off", {"not": {"label_present": "STARRED"}}, "trash", priority=-5, enabled=False),
)


class Silent:
    """A model that decides to do nothing."""

    async def advise(self, message: StoredMessage) -> Advice:
        return Advice(ModelDecision("none", {}, 1.0, "nothing to do", False), "a-model", "1")


def some_letter(rng: random.Random, number: int, now: datetime) -> Sample:
    headers = {"List-Id": "<chess.club.example>"} if rng.random() < 0.25 else {}
    labels = {"INBOX", "UNREAD"} | ({"Label_1"} if rng.random() < 0.3 else set())
    return Sample(
        f"m{number}",
        f"{rng.choice('abc')}@{rng.choice(DOMAINS)}",
        " ".join(rng.sample(WORDS, 2)),
        rng.choice(["total due: 5", "hello"]),
        frozenset(labels | ({"STARRED"} if rng.random() < 0.1 else set())),
        headers,
        now - timedelta(hours=rng.randrange(100)),
        is_whole=rng.random() < 0.85,
        size=rng.choice([None, 1_000, 5_000]),
    )


async def lived(mail_setup: MailSetup, letters: list[Sample], began: datetime) -> dict[str, Decision]:
    """Each arrives some minutes after the one before, and is decided on."""
    made: dict[str, Decision] = {}
    for number, letter in enumerate(letters):
        mail_setup.setup.clock.now = began + timedelta(minutes=7 * number)
        [made[letter.id]] = await mail_setup.decide(letter)
    return made


async def foreseen(setup: JobSetup, change: ChangeOfRules) -> dict[str, tuple[ForeseenDecision, ForeseenDecision]]:
    stored = await setup.database.run(rules.list_rules())
    before, after = [view.rule for view in stored if view.enabled], change.applied_to(stored)
    setting = await load_context(setup.database, POLICY, True, setup.clock())
    told: dict[str, tuple[ForeseenDecision, ForeseenDecision]] = {}

    def tell(past: PastMessage, one: ForeseenDecision, other: ForeseenDecision) -> None:
        told[past.message.provider_message_id] = one, other

    worlds = SimulatedPair(SimulatedRules(before, setting), SimulatedRules(after, setting))
    await replay(setup.database, worlds, ALL, needed_by(before, after), tell)
    return told


def as_decided(decision: Decision) -> tuple[str, str | None, str, Mapping[str, Any], Mapping[str, Any] | None]:
    return decision.source, decision.rule_name, decision.action_type, decision.parameters, decision.safety


def as_foreseen(found: ForeseenDecision) -> tuple[str, str | None, str, Mapping[str, Any], Mapping[str, Any]]:
    return found.source, found.rule_name, found.action_type, found.parameters, found.safety


async def restrained(setup: JobSetup) -> None:
    signed = [Signature(new_id(), "test", "admin") for _ in range(2)]
    await setup.database.run(protection.protect("sender", "a@shop.example", "a friend", signed[0], setup.clock()))
    await setup.database.run(protection.begin_shadow("category", "travel", signed[1], setup.clock()))


async def test_the_decisions_that_were_predicted_are_made_when_the_rules_then_run(setup: JobSetup) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    rng, began = random.Random(seed), setup.clock()
    letters = [some_letter(rng, number, began) for number in range(scale(36, 2_000))]
    adviser = Silent()
    await restrained(setup)
    mail_setup = await MailSetup(setup, policy=POLICY, adviser=adviser).opened()
    await mail_setup.rules(*BEFORE)
    made = await lived(mail_setup, letters, began)
    for number in range(0, len(letters), 3):
        await mail_setup.user(f"m{number}", add="Label_1 STARRED", remove="INBOX")
    predicted = await foreseen(setup, ChangeOfRules(AFTER, without=("offers",)))
    assert {id: as_foreseen(one) for id, (one, _) in predicted.items()} == {id: as_decided(d) for id, d in made.items()}

    await setup.database.run(rules.remove_rule("offers", Signature(new_id(), "test", "admin"), setup.clock()))
    fresh = await MailSetup(setup, "gmail:user:fresh", POLICY, adviser).opened()
    await fresh.rules(*AFTER)
    made = await lived(fresh, letters, began)
    assert {id: as_foreseen(other) for id, (_, other) in predicted.items()} == {
        id: as_decided(decision) for id, decision in made.items()
    }
    assert len({other.summary for _, other in predicted.values()}) > 4, "a mailbox in which something happens"


async def asked(
    setup: JobSetup, change: ChangeOfRules, has_model: bool = False, wanted: MessageSelection = ALL
) -> SimulationResult:
    stored = await setup.database.run(rules.list_rules())
    before = [view.rule for view in stored if view.enabled]
    question = SimulationRequest(before, change.applied_to(stored), wanted, POLICY, has_model)
    return await simulate(setup.database, question, setup.clock())


def changes(found: SimulationResult) -> dict[tuple[str, str], int]:
    return {(each.before, each.after): each.count for each in found.changes}


async def test_the_changes_are_counted_with_samples_of_each(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*BEFORE)
    await mail_setup.decide(*(Sample(f"o{n}", subject="an offer") for n in range(7)), Sample("b", "x@bank.example"))
    draft = RuleDraft("keep", {"sender_domain": "shop.example"}, "apply_label", {"label": "Travel"}, priority=1)
    found = await asked(setup, ChangeOfRules([draft], without=["bank"]))
    assert (found.messages, found.changed) == (8, 8)
    assert changes(found) == {("trash", "apply_label Travel"): 7, ("star (needs approval)", "stay"): 1}
    (most, _) = found.changes
    assert [(each.subject, each.rule_before, each.rule_after) for each in most.samples] == [
        ("an offer", "offers", "keep")
    ] * 5
    assert (found.before.approvals, found.after.approvals) == (1, 0)
    assert found.after.by_rule == {"keep": 7}


async def test_it_is_told_how_often_the_model_would_be_asked(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*BEFORE)
    metadata = Sample("m", "x@bank.example", is_whole=False)
    await mail_setup.deliver(Sample("a", "x@bank.example"), Sample("b", "y@bank.example"), Sample("c"), metadata)
    found = await asked(setup, ChangeOfRules(without=["bank"]), has_model=True)
    assert (found.before.model_calls, found.after.model_calls) == (1, 3)
    assert changes(found) == {("star (needs approval)", "ask the model"): 2, ("star (needs approval)", "stay"): 1}


async def test_the_same_by_another_rule_is_no_change_but_told(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*BEFORE)
    await mail_setup.deliver(Sample("a", subject="an offer"))
    found = await asked(setup, ChangeOfRules([RuleDraft("other", {"subject_contains": "offer"}, "trash", priority=1)]))
    assert (found.changed, found.other_rule) == (0, 1)


async def test_a_rule_that_is_disabled_or_in_shadow_is_tried_as_if_it_were_in_use(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    drafts = [
        RuleDraft("asleep", {"subject_contains": "offer"}, "trash", enabled=False),
        RuleDraft("dark", {"subject_contains": "news"}, "archive", shadow=True),
    ]
    await mail_setup.rules(*drafts)
    await mail_setup.deliver(Sample("a", subject="an offer"), Sample("b", subject="news"))
    found = await asked(setup, ChangeOfRules(switched_on=["asleep", "dark"]))
    assert changes(found) == {("stay", "trash"): 1, ("stay", "archive"): 1}
    with pytest.raises(NotFound, match="there is no rule 'nobody'"):
        await asked(setup, ChangeOfRules(without=["nobody"]))


async def test_a_file_that_replaces_all_leaves_nothing_of_the_others(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*BEFORE)
    await mail_setup.deliver(Sample("a", subject="an offer"), Sample("b", "x@bank.example"))
    found = await asked(setup, ChangeOfRules([BEFORE[2]], replaces_all=True))
    assert changes(found) == {("trash", "stay"): 1}


async def test_each_decision_sees_the_effects_of_those_before_it(setup: JobSetup) -> None:
    """The hour's share of what cannot be undone, answers to the same sender."""
    mail_setup = await MailSetup(setup).opened()
    for number in range(4):
        setup.clock.forward(600)
        await mail_setup.deliver(Sample(f"f{number}", "x@firm.example", "report"))
    setup.clock.forward(7200)
    for number in range(2):
        await mail_setup.deliver(Sample(f"q{number}", "y@firm.example", "question"))
    found = await asked(setup, ChangeOfRules(AFTER))
    assert changes(found) == {
        ("stay", "forward to b@firm.example"): 2,
        ("stay", "forward to b@firm.example (needs approval)"): 2,
        ("stay", "auto_reply"): 2,
    }
    assert found.after.answers_held_back == 1


async def test_messages_are_replayed_as_they_were_on_arrival_whatever_became_of_them(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(RuleDraft("a", {"sender_domain": "shop.example"}, "archive"))
    await mail_setup.acted(Sample("a"), frozenset({"UNREAD"}))
    await mail_setup.user("a", "STARRED", "UNREAD")
    draft = RuleDraft("new", {"and": [{"label_present": "INBOX"}, {"label_present": "UNREAD"}]}, "trash", priority=1)
    assert changes(await asked(setup, ChangeOfRules([draft]))) == {("archive", "trash"): 1}


@pytest.mark.parametrize("stride", [2, 1000])
async def test_only_the_newest_of_one_account_since_a_time_are_replayed_in_their_order(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(simulating, "STRIDE", stride)
    mail_setup, other = await MailSetup(setup).opened(), await MailSetup(setup, "gmail:user:other").opened()
    await mail_setup.deliver(Sample("too old"))
    since = setup.clock.forward(60)
    await mail_setup.deliver(Sample("one"), Sample("two"))
    await other.deliver(Sample("theirs"))
    await mail_setup.deliver(Sample("three"), Sample("four"))
    seen: list[str] = []
    totals: list[int] = []
    setting = await load_context(setup.database, POLICY, False, setup.clock())
    worlds = SimulatedPair(SimulatedRules([], setting), SimulatedRules([], setting))

    async def replayed(wanted: MessageSelection) -> list[str]:
        seen.clear()
        count = await replay(
            setup.database,
            worlds,
            wanted,
            needed_by(),
            lambda past, _one, _other: seen.append(past.message.provider_message_id),
            lambda _done, total: totals.append(total),
        )
        assert count == len(seen) == totals[-1]
        return list(seen)

    assert await replayed(MessageSelection(since, 100)) == ["one", "two", "theirs", "three", "four"]
    assert await replayed(MessageSelection(since, 100, mail_setup.account.id)) == ["one", "two", "three", "four"]
    assert await replayed(MessageSelection(LONG_AGO, 3, mail_setup.account.id)) == ["two", "three", "four"]


async def test_long_mail_is_read_in_short_pages(setup: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulating, "PAGE_TEXT", 100)
    mail_setup = await MailSetup(setup).opened()
    sizes = (99, 500, 30, 30, 60, 1)
    await mail_setup.deliver(*(Sample(f"m{number}", text="x" * size) for number, size in enumerate(sizes)))
    setting = await load_context(setup.database, POLICY, False, setup.clock())
    rule = ChangeOfRules([RuleDraft("looks", {"body_contains": "y"}, "star")]).applied_to([])

    async def pages(*sets: Any) -> list[tuple[int, int]]:
        told: list[tuple[int, int]] = []
        worlds = SimulatedPair(SimulatedRules([], setting), SimulatedRules([], setting))
        await replay(
            setup.database,
            worlds,
            ALL,
            needed_by(*sets),
            lambda _past, _one, _other: None,
            lambda done, total: told.append((done, total)),
        )
        return told

    assert await pages(rule) == [(2, 6), (5, 6), (6, 6)]
    assert await pages() == [(6, 6)], "nobody looks at the text"


async def test_rules_of_equal_priority_keep_the_order_in_which_they_were_given(setup: JobSetup) -> None:
    drafts = [RuleDraft(f"rule {number}", {"has_attachment": False}, "star") for number in range(30)]
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*drafts)
    named = [draft.name for draft in drafts]
    assert [view.name for view in await setup.database.run(rules.list_rules())] == named
    assert [rule.name for rule in ChangeOfRules(drafts).applied_to([])] == named


async def test_a_simulation_writes_nothing(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*BEFORE)
    await mail_setup.deliver(Sample("a", subject="an offer"))
    before = await dump(setup.database, receipts=True)
    await asked(setup, ChangeOfRules(AFTER))
    assert await dump(setup.database, receipts=True) == before
