"""What the user does in their mailbox: how it answers decisions, and which rules it leads to."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.actions.action import DecidedType
from postroom.core.errors import Conflict
from postroom.core.mail.sender_doubt import DOUBTS, SenderDoubt
from postroom.core.rules import learning
from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail.labels import sync_labels
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.people.audit import Signature
from postroom.store.rules import outcomes, proposals, rules
from postroom.store.rules.proposals import ProposalView
from support.store.job_setup import JobSetup
from support.store.mail_setup import LABELS, MailSetup, Sample

ARCHIVE = RuleDraft("shops", {"sender_domain": "shop.example"}, "archive", priority=50)
UNREAD = frozenset({"UNREAD"})


async def the_outcomes(mail_setup: MailSetup, letter_id: str) -> list[tuple[bool, str]]:
    found = await mail_setup.setup.database.run(outcomes.outcomes_of(mail_setup.ids[letter_id]))
    return [(each.agreed, each.what) for each in found]


async def proposed(setup: JobSetup) -> list[ProposalView]:
    return await setup.database.run(proposals.list_proposals("open", 1000))


async def a_room(setup: JobSetup, *drafts: RuleDraft) -> MailSetup:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(*drafts)
    return mail_setup


async def by_hand(mail_setup: MailSetup, *samples: Sample, add: str = "", remove: str = "") -> None:
    await mail_setup.decide(*samples)
    for message in samples:
        await mail_setup.user(message.id, add, remove)


def samples(*senders: str, **more: Any) -> list[Sample]:
    return [Sample(f"{senders[0]} {number}", sender, **more) for number, sender in enumerate(senders)]


@pytest.mark.parametrize(
    ("then", "label", "add", "remove", "answer"),
    [
        ("archive", None, "", "INBOX", [(True, "archived it")]),
        ("archive", None, "TRASH", "INBOX", [(False, "moved it to the trash")]),
        ("archive", None, "", "UNREAD", []),
        ("apply_label", "receipts", "Label_1", "", [(True, "gave it this label")]),
        ("apply_label", "Receipts", "Label_2", "", [(False, "gave it another label")]),
        ("trash", None, "STARRED", "", [(False, "starred it")]),
    ],
)
async def test_what_the_user_does_is_compared_with_what_was_decided_in_shadow(
    setup: JobSetup, then: DecidedType, label: str | None, add: str, remove: str, answer: list[tuple[bool, str]]
) -> None:
    draft = RuleDraft("r", {"sender_domain": "shop.example"}, then, {"label": label} if label else {}, shadow=True)
    mail_setup = await a_room(setup, draft)
    await mail_setup.decide(Sample("a"))
    await mail_setup.user("a", add, remove)
    assert await the_outcomes(mail_setup, "a") == answer


async def test_the_last_word_of_the_user_counts(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, RuleDraft("r", {"sender_domain": "shop.example"}, "archive", shadow=True))
    await mail_setup.decide(Sample("a"))
    await mail_setup.user("a", "TRASH", "INBOX")
    await mail_setup.user("a", "INBOX", "TRASH")
    await mail_setup.user("a", "", "INBOX")
    assert await the_outcomes(mail_setup, "a") == [(True, "archived it")]


async def test_a_message_put_back_answers_the_decision_and_an_exception_is_proposed(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    await mail_setup.acted(Sample("a"), UNREAD)
    await mail_setup.user("a", "INBOX")
    assert await the_outcomes(mail_setup, "a") == [(False, "moved it back to the inbox")]
    [found] = await proposed(setup)
    draft = found.draft
    assert draft.conditions == {"and": [{"sender_email": "ida@shop.example"}, {"sender_domain": "shop.example"}]}
    assert (draft.action_type, draft.priority, draft.scope) == ("none", 49, "account")
    assert found.evidence["messages"] == [str(mail_setup.ids["a"])]
    assert (found.evidence["kind"], found.evidence["count"]) == ("taken_back", 1)


@pytest.mark.parametrize("doubt", DOUBTS)
async def test_nothing_is_learned_from_mail_whose_sender_is_in_doubt(setup: JobSetup, doubt: SenderDoubt) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    await mail_setup.acted(Sample("a", sender_doubt=doubt), UNREAD)
    await mail_setup.user("a", "INBOX")
    assert await the_outcomes(mail_setup, "a") == [(False, "moved it back to the inbox")]
    forged = samples(*["ida@home.example"] * 3, headers={"List-Id": "<friends.example>"}, sender_doubt=doubt)
    await by_hand(mail_setup, *forged, add="STARRED")
    assert await proposed(setup) == []


async def test_forged_mail_counts_neither_for_nor_against_what_the_user_does(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    honest = samples("ida@home.example", "ida@home.example")
    await by_hand(mail_setup, *honest, add="STARRED")
    await by_hand(mail_setup, Sample("forged", "ida@home.example", sender_doubt="failed"), add="STARRED")
    assert await proposed(setup) == [], "two are not enough, and a forged third does not help"
    await by_hand(mail_setup, Sample("other", "ida@home.example", sender_doubt="failed"), remove="INBOX")
    await by_hand(mail_setup, Sample("third", "ida@home.example"), add="STARRED")
    assert [each.draft.name for each in await proposed(setup)] == ["Star mail from ida@home.example"]


@pytest.mark.parametrize("doubt", DOUBTS)
async def test_calling_a_decision_on_forged_mail_wrong_proposes_no_rule(setup: JobSetup, doubt: SenderDoubt) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    await mail_setup.acted(Sample("a", sender_doubt=doubt), UNREAD)
    decision = await mail_setup.decision("a")
    signed = Signature(new_id(), "test", "admin")
    wrong = outcomes.record_mistake(decision.id, mail_setup.ids["a"], signed, setup.clock())
    assert await setup.database.run(wrong) is None
    assert await proposed(setup) == []


async def test_a_message_moved_elsewhere_is_proposed_to_go_there(setup: JobSetup) -> None:
    tag = RuleDraft("tag", {"sender_domain": "shop.example"}, "apply_label", {"label": "Receipts"})
    mail_setup = await a_room(setup, tag)
    await mail_setup.acted(Sample("a"), frozenset({"INBOX", "UNREAD", "Label_1"}))
    await mail_setup.user("a", "Label_2", "Label_1")
    assert await the_outcomes(mail_setup, "a") == [(False, "removed this label")]
    [found] = await proposed(setup)
    assert (found.draft.action_type, found.draft.parameters) == ("apply_label", {"label": "Travel"})


async def test_evidence_for_the_same_rule_is_gathered_in_one_proposal(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    for id in ("a", "b"):
        await mail_setup.acted(Sample(id), UNREAD)
        await mail_setup.user(id, "INBOX")
    [found] = await proposed(setup)
    assert found.evidence["count"] == 2
    assert found.evidence["messages"] == [str(mail_setup.ids["a"]), str(mail_setup.ids["b"])]


async def test_our_own_action_told_by_the_history_is_not_taken_for_the_users(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    await mail_setup.acted(Sample("a"), UNREAD)
    await mail_setup.user("a", "", "INBOX")
    assert (await the_outcomes(mail_setup, "a"), await proposed(setup)) == ([], [])


async def test_what_the_history_tells_while_we_act_is_not_taken_for_the_users(setup: JobSetup) -> None:
    """The change is seen before its action has completed; and a shadow beside it would have done the same."""
    mail_setup = await a_room(
        setup, ARCHIVE, RuleDraft("too", {"has_attachment": False}, "archive", priority=1, shadow=True)
    )
    await mail_setup.decide(Sample("a"))
    await mail_setup.user("a", "", "INBOX")
    assert await the_outcomes(mail_setup, "a") == []


async def test_a_change_told_right_after_the_action_was_on_its_way_before(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, ARCHIVE)
    await mail_setup.acted(Sample("a"), UNREAD)
    setup.clock.forward(-5)
    await mail_setup.user("a", "INBOX")
    assert (await the_outcomes(mail_setup, "a"), await proposed(setup)) == ([], [])


async def test_snoozed_mail_that_comes_back_at_its_time_was_not_put_back_by_the_user(setup: JobSetup) -> None:
    mail_setup = await a_room(
        setup, RuleDraft("later", {"sender_domain": "shop.example"}, "snooze", {"amount": 1, "units": "hours"})
    )
    until = (setup.clock() + timedelta(hours=1)).isoformat()
    hint = {"snooze_until": until, "snooze_label_id": "Label_2"}
    await mail_setup.acted(Sample("a"), frozenset({"UNREAD", "Label_2"}), **hint)
    await mail_setup.acted(Sample("b"), frozenset({"UNREAD", "Label_2"}), **hint)
    await mail_setup.user("b", "INBOX", "Label_2")
    setup.clock.forward(3600)
    await mail_setup.user("a", "INBOX", "Label_2")
    assert await the_outcomes(mail_setup, "a") == []
    assert await the_outcomes(mail_setup, "b") == [(False, "moved it back to the inbox")], "an hour too early for us"


async def test_the_same_done_three_times_by_hand_is_proposed_as_a_rule(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    first, second, third = samples(*["ida@shop.example"] * 3)
    await by_hand(mail_setup, first, second, remove="INBOX")
    assert await proposed(setup) == []
    await by_hand(mail_setup, third, remove="INBOX")
    [found] = await proposed(setup)
    assert (found.draft.conditions, found.draft.action_type) == ({"sender_email": "ida@shop.example"}, "archive")
    assert (found.evidence["by"], found.evidence["count"]) == ("sender", 3)
    assert sorted(found.evidence["messages"]) == sorted(str(id) for id in mail_setup.ids.values())


@pytest.mark.parametrize("labels", [("", "UNREAD"), ("TRASH", "INBOX")], ids=["read and kept", "trashed"])
async def test_one_message_treated_otherwise_is_enough_to_propose_nothing(
    setup: JobSetup, labels: tuple[str, str]
) -> None:
    mail_setup = await a_room(setup)
    *same, other = samples(*["ida@shop.example"] * 5)
    await by_hand(mail_setup, other, add=labels[0], remove=labels[1])
    await by_hand(mail_setup, *same, remove="INBOX")
    assert await proposed(setup) == []


async def test_mail_that_was_not_looked_at_yet_speaks_neither_for_nor_against(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    *same, other = samples(*["ida@shop.example"] * 4)
    await mail_setup.decide(other)
    await by_hand(mail_setup, *same, remove="INBOX")
    assert len(await proposed(setup)) == 1


async def test_what_we_did_ourselves_does_not_count_as_done_by_hand(setup: JobSetup) -> None:
    mail_setup = await a_room(setup, RuleDraft("one", {"subject_contains": "ours"}, "archive"))
    for message in samples(*["ida@shop.example"] * 2, subject="ours"):
        await mail_setup.acted(message, UNREAD)
    await by_hand(mail_setup, Sample("x"), remove="INBOX")
    assert await proposed(setup) == []


async def test_mail_of_one_list_or_domain_is_proposed_when_its_senders_differ(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    of_list = samples(
        "a@one.example", "b@two.example", "c@three.example", headers={"List-Id": "Chess <chess.club.example>"}
    )
    await by_hand(mail_setup, *of_list, add="Label_2", remove="INBOX")
    [found] = await proposed(setup)
    assert (found.draft.conditions, found.draft.parameters) == ({"list_id": "chess.club.example"}, {"label": "Travel"})
    await by_hand(
        mail_setup, *samples("a@firm.example", "b@firm.example", "c@firm.example"), add="TRASH", remove="INBOX"
    )
    newest, *_ = await proposed(setup)
    assert (newest.draft.conditions, newest.draft.action_type) == ({"sender_domain": "firm.example"}, "trash")
    before = len(await proposed(setup))
    await by_hand(mail_setup, *samples("a@gmail.com", "b@gmail.com", "c@gmail.com"), add="TRASH", remove="INBOX")
    assert len(await proposed(setup)) == before, "who has an address at a provider has nothing to do with the others"


async def test_what_lies_further_back_than_thirty_days_is_forgotten(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    *same, last = samples(*["ida@shop.example"] * 3)
    await by_hand(mail_setup, *same, remove="INBOX")
    setup.clock.forward(31 * 86_400)
    await by_hand(mail_setup, last, remove="INBOX")
    assert await proposed(setup) == []


async def test_a_label_that_is_no_label_of_the_user_says_nothing(setup: JobSetup) -> None:
    mail_setup = await a_room(setup)
    await setup.database.run(sync_labels(mail_setup.account.id, LABELS[:1], setup.clock()))
    await by_hand(mail_setup, *samples(*["ida@shop.example"] * 3), add="CATEGORY_PROMOTIONS IMPORTANT Label_1")
    assert await proposed(setup) == []


async def three_by_hand(setup: JobSetup) -> tuple[MailSetup, ProposalView]:
    mail_setup = await a_room(setup)
    await by_hand(mail_setup, *samples(*["ida@shop.example"] * 3), remove="INBOX")
    [found] = await proposed(setup)
    return mail_setup, found


def signed() -> Signature:
    return Signature(new_id(), "test", "admin")


async def test_nothing_is_applied_before_it_was_accepted_and_then_first_in_shadow(setup: JobSetup) -> None:
    _, found = await three_by_hand(setup)
    assert await setup.database.run(rules.list_rules()) == []
    accept = proposals.accept_proposal(found.id, new_id(), True, signed(), setup.clock())
    view, name = await setup.database.run(accept)
    [rule] = await setup.database.run(rules.list_rules())
    assert (rule.name, rule.origin, rule.mode, rule.enabled) == (name, "learned", "shadow", True)
    assert (view.state, view.rule_id) == ("accepted", rule.id)
    with pytest.raises(Conflict, match="accepted already"):
        await setup.database.run(proposals.dismiss_proposal(found.id, signed(), setup.clock()))


async def with_connections(setup: JobSetup, count: int) -> None:
    """Opened before, so that what begins together goes on together."""
    await asyncio.gather(*(proposed(setup) for _ in range(count)))


async def test_of_many_who_accept_at_once_one_makes_the_rule(setup: JobSetup) -> None:
    _, found = await three_by_hand(setup)

    async def accept() -> str:
        try:
            await setup.database.run(proposals.accept_proposal(found.id, new_id(), False, signed(), setup.clock()))
        except Conflict as conflict:
            return str(conflict)
        return "made"

    await with_connections(setup, 4)
    told = sorted(await asyncio.gather(*(accept() for _ in range(4))))
    assert told[0] == "made"
    assert all("accepted already" in each for each in told[1:]), told
    [rule] = await setup.database.run(rules.list_rules())
    [kept] = await setup.database.run(proposals.list_proposals(None, 9))
    assert (kept.state, kept.rule_id) == ("accepted", rule.id)


async def test_who_accepts_and_who_dismisses_at_once_do_not_both_have_their_way(setup: JobSetup) -> None:
    _, found = await three_by_hand(setup)
    answers: list[Transaction[Any]] = [
        proposals.dismiss_proposal(found.id, signed(), setup.clock()),
        proposals.accept_proposal(found.id, new_id(), False, signed(), setup.clock()),
    ]
    await with_connections(setup, 2)
    ended = await asyncio.gather(*(setup.database.run(each) for each in answers), return_exceptions=True)
    [refused] = [each for each in ended if isinstance(each, BaseException)]
    assert isinstance(refused, Conflict)
    [kept] = await setup.database.run(proposals.list_proposals(None, 9))
    assert len(await setup.database.run(rules.list_rules())) == (kept.state == "accepted")


async def test_a_name_that_is_taken_is_no_obstacle(setup: JobSetup) -> None:
    mail_setup, found = await three_by_hand(setup)
    await mail_setup.rules(RuleDraft(found.draft.name, {"sender_domain": "other.example"}, "star"))
    _, name = await setup.database.run(proposals.accept_proposal(found.id, new_id(), False, signed(), setup.clock()))
    assert name.startswith(found.draft.name)
    modes = {rule.name: rule.mode for rule in await setup.database.run(rules.list_rules())}
    assert modes == {found.draft.name: "active", name: "active"}


async def test_what_is_done_to_much_mail_of_one_origin_is_looked_into_once(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def counted(account_id: Any, deed: Any, origin: Any, *given: Any) -> Any:
        looked.append((origin.sender, deed.action_type))
        return learning.repeated(account_id, deed, origin, *given)

    monkeypatch.setattr(outcomes, "repeated", counted)
    mail_setup = await a_room(setup)
    *same, kept = samples(*["ida@shop.example"] * 5)
    await by_hand(mail_setup, kept, remove="UNREAD")
    await mail_setup.decide(*same, Sample("other", "ute@other.example"))
    changes = [Change(id, labels_removed=frozenset({"INBOX"})) for id in mail_setup.ids if id != kept.id]
    await setup.database.run(apply_changes(mail_setup.endpoint, changes, setup.clock()))
    assert sorted(looked) == [("ida@shop.example", "archive"), ("ute@other.example", "archive")]


async def test_what_was_dismissed_is_not_proposed_again(setup: JobSetup) -> None:
    mail_setup, found = await three_by_hand(setup)
    await setup.database.run(proposals.dismiss_proposal(found.id, signed(), setup.clock()))
    await by_hand(mail_setup, Sample("more"), Sample("still more"), remove="INBOX")
    assert await proposed(setup) == []
    [kept] = await setup.database.run(proposals.list_proposals(None, 9))
    assert (kept.state, kept.evidence) == ("dismissed", found.evidence)


async def test_more_than_a_hundred_questions_are_not_asked(setup: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "MOST_OPEN", 1)
    mail_setup = await a_room(setup)
    await by_hand(mail_setup, *samples(*["ida@shop.example"] * 3), remove="INBOX")
    await by_hand(mail_setup, *samples(*["ute@other.example"] * 3), remove="INBOX")
    assert len(await proposed(setup)) == 1


async def test_what_the_user_did_takes_the_same_few_statements_however_much_it_is(
    database: Database, setup: JobSetup
) -> None:
    mail_setup = await a_room(setup, RuleDraft("r", {"has_attachment": False}, "archive", shadow=True))
    await mail_setup.decide(*(Sample(f"m{number}", f"s{number}@x{number}.example") for number in range(12)))

    async def statements(*ids: str) -> set[str]:
        names: list[str] = []
        verb = apply_changes(
            mail_setup.endpoint, [Change(id, labels_removed=frozenset({"INBOX"})) for id in ids], setup.clock()
        )

        def watched() -> Any:
            script = verb.begin()
            rows: Any = None
            while True:
                try:
                    step = script.send(rows)
                except StopIteration as end:
                    return end.value
                names.append(getattr(step, "name", "notify"))
                rows = yield step

        await database.run(verb._replace(begin=watched))
        per_message = {"update_message_labels"}
        assert len([name for name in names if name not in per_message]) == len(set(names) - per_message)
        return set(names)

    assert await statements("m0") == await statements(*(f"m{number}" for number in range(1, 12)))
