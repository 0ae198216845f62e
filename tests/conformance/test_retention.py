"""Retention on both databases: content goes, what proves that it existed stays, and nothing open is touched."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest

from postroom.core.actions.action import Actor
from postroom.core.errors import NotFound, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.retention import RetentionPolicy
from postroom.core.mail.search import read_query
from postroom.core.rules.rule import DecisionSource
from postroom.store.actions import actions, decisions, undos
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Database, Dialect, Script, Text, Transaction, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import classify_job
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import mail, retention
from postroom.store.mail.mail_views import read_mail
from postroom.store.mail.retention import ExpiredMessage, PruneCounts
from postroom.store.mail.search import search_mail
from postroom.store.people.audit import list_audit
from postroom.triage.act.retention import Retention
from support.clocks import ManualClock
from support.faults import InjectedFault
from support.mail import done, keep_account, keep_mail
from support.store.dump import dump
from support.store.fault_cases_registry import signed

T = TypeVar("T")
DAY = 86_400
SECRET = "kanarievogel"
YEAR = RetentionPolicy(full_days=365, metadata_days=365)


async def secret_mail(database: Database, clock: ManualClock, number: object = 1, **parts: Any) -> UUID:
    """A message with the same word wherever its content may be stored."""
    head = [("X-Note", SECRET), ("List-Id", f"<{SECRET}>")]
    return await keep_mail(
        database, clock, number, subject=f"{SECRET} {number}", body=SECRET, headers=head, files=[SECRET], **parts
    )


def past(*ids: UUID, tier: Any = "full", categories: tuple[str, ...] = ()) -> list[ExpiredMessage]:
    return [ExpiredMessage(id, tier, categories) for id in ids]


async def prune(database: Database, clock: ManualClock, *ids: UUID) -> PruneCounts:
    counts = await database.run(retention.prune_messages(past(*ids), signed(), clock()))
    if await database.run(retention.merge_words(-100)):
        assert not await database.run(retention.merge_words(100))
    return counts


async def found(database: Database, query: str) -> int:
    return len((await database.run(search_mail(read_query(query), database.dialect, 50))).found)


async def where(database: Database, word: str) -> set[str]:
    """The tables in which the word is found."""
    return {table for table, rows in (await dump(database)).items() if word in str(rows)}


@pytest.mark.parametrize("tier", ["full", "metadata"])
async def test_no_content_is_left_anywhere_and_the_message_is_still_known(
    database: Database, clock: ManualClock, tier: str
):
    id = await secret_mail(database, clock, tier=tier)
    before = await database.run(mail.load_message(id))
    clock.forward(DAY)
    assert await prune(database, clock, id) == PruneCounts(1, 0, {"full": 1}, {"none": 1})
    assert await where(database, SECRET) == set()
    after = await database.run(mail.load_message(id))
    assert (after.provider_message_id, after.facts.sender) == (before.provider_message_id, before.facts.sender)
    assert (after.facts.subject, after.facts.headers, after.facts.body_text) == ("", (), "")
    assert not after.may_act
    assert await found(database, "after:2020-01-01") == 0
    with pytest.raises(NotFound, match="retention ended"):
        await database.run(read_mail(id))


async def test_the_same_message_again_is_a_duplicate_and_brings_nothing_back(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock, tier="metadata")
    await prune(database, clock, id)
    with pytest.raises(ValueError, match="not enough values"):  # nothing to lease: it is known
        await secret_mail(database, clock, tier="metadata")
    with pytest.raises(IndexError):  # a full copy is let in as an upgrade, and not stored
        await secret_mail(database, clock)
    assert await where(database, SECRET) <= {"envelopes", "switchboard.envelopes", "postroom.envelopes"}
    assert (await database.run(mail.load_message(id))).facts.body_text == ""


async def test_other_mail_of_the_thread_keeps_its_subject_until_all_is_pruned(database: Database, clock: ManualClock):
    first = await secret_mail(database, clock, 1)
    second = await secret_mail(database, clock, 2)
    await prune(database, clock, first)
    assert await found(database, SECRET) == 1
    assert (await database.run(mail.load_message(second))).facts.body_text == SECRET
    await prune(database, clock, second)
    assert await where(database, SECRET) == set()


async def test_a_message_with_an_open_action_is_held_until_it_has_ended(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    account_id = (await database.run(mail.load_message(id))).account_id
    job, action_id = new_job(CATALOGUE, "action.gmail", {}, priority=100), new_id()
    decision = decisions.Decision(new_id(), account_id, id, "none", "archive", {}, 1.0, "a test")
    action = decisions.NewAction(action_id, "rule", "queued", "hash", job.id)
    await database.run(decisions.ask_for_action(decision, action, job, clock()))
    assert await database.run(retention.held_messages([id], clock())) == {id}
    assert await prune(database, clock, id) == PruneCounts(0, 1, {}, {})
    assert await found(database, SECRET) == 1


async def test_a_message_that_waits_for_approval_is_held(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    account_id = (await database.run(mail.load_message(id))).account_id
    job, action_id = new_job(CATALOGUE, "approval.notify", {}, priority=100), new_id()
    decision = decisions.Decision(new_id(), account_id, id, "none", "delete", {}, 1.0, "a test", needs_approval=True)
    action = decisions.NewAction(
        action_id, "model", "approved_pending", "hash", job.id, expires_at=clock() + timedelta(days=1)
    )
    await database.run(decisions.ask_for_action(decision, action, job, clock()))
    assert (await prune(database, clock, id)).held == 1


async def test_a_message_about_which_is_still_to_be_decided_is_held(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    account_id = (await database.run(mail.load_message(id))).account_id
    job = classify_job(CATALOGUE, account_id, id, "full", None)
    await database.run(jobs.enqueue_many([job], clock()))
    assert (await prune(database, clock, id)).held == 1
    await database.run(jobs.cancel_job(job.id, clock()))
    assert (await prune(database, clock, id)).messages == 1


async def test_a_snoozed_message_is_held_until_it_has_come_back(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    account_id = (await database.run(mail.load_message(id))).account_id
    job, action_id, token = new_job(CATALOGUE, "action.gmail", {}, priority=100), new_id(), new_id()
    decision = decisions.Decision(new_id(), account_id, id, "none", "snooze", {}, 1.0, "a test")
    action = decisions.NewAction(action_id, "user", "queued", "hash", job.id)
    await database.run(decisions.ask_for_action(decision, action, job, clock()))
    await database.run(jobs.open_lease(token, "worker", clock(), clock() + timedelta(minutes=1)))
    (claimed,) = await database.run(jobs.claim(token, 1, clock()))
    await database.run(actions.begin_action(claimed, action_id, 20, clock()))
    until = clock() + timedelta(days=2)
    await database.run(
        actions.keep_pre_image(
            claimed, action_id, {"labels": sorted(frozenset()), "snooze_until": until.isoformat()}, clock()
        )
    )
    hint: Mapping[str, Any] = {"inverse_action": "none", "irreversible": False}
    await database.run(
        actions.complete_action(claimed, action_id, actions.DoneChange(frozenset(), dict(hint)), clock())
    )
    assert (await prune(database, clock, id)).held == 1
    clock.forward(3 * DAY)
    assert (await prune(database, clock, id)).messages == 1


async def test_what_was_done_can_be_undone_after_pruning(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    action_id = await done(database, clock, id)
    await prune(database, clock, id)
    candidate = await database.run(undos.undo_candidate(action_id))
    assert candidate is not None
    assert candidate.hint is not None
    assert candidate.hint["inverse_parameters"]["add_labels"] == ["INBOX"]


async def test_words_of_models_and_agents_about_it_go_and_those_of_rules_stay(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    account_id = (await database.run(mail.load_message(id))).account_id
    made: list[tuple[DecisionSource, Actor, str]] = [
        ("deterministic", "rule", "the first rule to match"),
        ("llm", "model", SECRET),
        ("none", "agent", SECRET),
    ]
    for number, (source, actor, why) in enumerate(made, 1):
        job = new_job(CATALOGUE, "action.gmail", {}, priority=100)
        decision = decisions.Decision(new_id(), account_id, id, source, "archive", {}, 1.0, why, generation=number)
        action = decisions.NewAction(new_id(), actor, "queued", f"hash{number}", job.id)
        await database.run(decisions.ask_for_action(decision, action, job, clock()))
        await database.run(jobs.cancel_job(job.id, clock()))
    await database.run(actions.end_orphans(clock()))
    assert (await prune(database, clock, id)).messages == 1
    assert await where(database, SECRET) == set()
    assert "the first rule to match" in str(await dump(database))


async def test_a_batch_is_audited_with_counts_and_without_content(database: Database, clock: ManualClock):
    ids = [await secret_mail(database, clock, number) for number in range(2)]
    entry = signed()
    batch = [*past(ids[0], categories=("finance", "travel")), *past(ids[1], tier="metadata")]
    await database.run(retention.prune_messages(batch, entry, clock()))
    (audited,) = await database.run(history_of("retention.prune"))
    assert audited.after == {
        "messages": 2,
        "held": 0,
        "tiers": {"full": 1, "metadata": 1},
        "categories": {"finance": 1, "none": 1, "travel": 1},
    }
    assert SECRET not in str(audited)


def history_of(action: str) -> Any:
    return list_audit(10, action=action)


async def test_pruning_twice_prunes_once(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    assert (await prune(database, clock, id)).messages == 1
    assert await prune(database, clock, id) == PruneCounts(0, 0, {}, {})
    assert len(await database.run(history_of("retention.prune"))) == 1


async def test_what_is_not_approved_or_no_longer_is_not_pruned(database: Database, clock: ManualClock):
    id = await secret_mail(database, clock)
    policy = YEAR.as_json()
    with pytest.raises(Refused, match="not approved"):
        await database.run(retention.prune_messages(past(id), signed(), clock(), policy))
    await database.run(retention.approve_retention(policy, signed(), clock()))
    other = RetentionPolicy(full_days=364, metadata_days=365).as_json()
    with pytest.raises(Refused, match="not approved"):
        await database.run(retention.prune_messages(past(id), signed(), clock(), other))
    assert await database.run(retention.withdraw_retention(signed(), clock()))
    assert not await database.run(retention.withdraw_retention(signed(), clock()))
    with pytest.raises(Refused, match="not approved"):
        await database.run(retention.prune_messages(past(id), signed(), clock(), policy))
    assert await found(database, SECRET) == 1


async def test_only_the_last_approval_counts(database: Database, clock: ManualClock):
    await database.run(retention.approve_retention(YEAR.as_json(), signed(), clock()))
    other = RetentionPolicy(full_days=1).as_json()
    await database.run(retention.approve_retention(other, signed(), clock()))
    approval = await database.run(retention.retention_approval())
    assert approval is not None
    assert (approval.policy, approval.approved_by) == (other, "cli:ada")
    entries = await database.run(history_of("retention.enable"))
    assert [each.before for each in entries] == [YEAR.as_json(), None]


async def test_pages_come_oldest_first_and_leave_nothing_out(database: Database, clock: ManualClock):
    ids = [await secret_mail(database, clock, number) for number in range(5)]
    position, seen = Cursor(clock() - timedelta(days=1), UUID(int=0)), list[UUID]()
    while page := await database.run(retention.kept_messages(clock(), position, 2)):
        seen += [each.id for each in page]
        position = Cursor(page[-1].stored_at, page[-1].id)
    assert sorted(seen) == sorted(ids)
    assert await database.run(retention.kept_messages(clock() - timedelta(seconds=1), Cursor(clock(), ids[0]), 2)) == []


async def test_a_pass_prunes_by_tier_and_category_and_keeps_what_is_young(database: Database, clock: ManualClock):
    await keep_account(database, clock())
    invoice = await keep_mail(database, clock, 1, subject="Your invoice", sender="shop@store.example")
    list_id, list_sender = [("List-Id", "<news>")], "newsletter@x.example"
    news = await keep_mail(database, clock, 2, subject="News", sender=list_sender, headers=list_id)
    note = await keep_mail(database, clock, 3, subject="Outline", tier="metadata", sender="noreply@x.example")
    clock.forward(40 * DAY)
    young = await keep_mail(database, clock, 4, subject="News", sender=list_sender, headers=list_id)
    policy = RetentionPolicy(0, 30, {"newsletters": 7, "finance": 3650, "relationship": 0})
    retaining = Retention(database, policy, clock, batch=2)
    seen = await retaining.preview("cli:ada")
    assert (seen.counts.messages, dict(seen.counts.tiers)) == (2, {"full": 1, "metadata": 1})
    assert [each.subject for each in seen.samples] == ["News", "Outline"]
    counts = await retaining.prune(signed())
    assert counts == seen.counts
    kept = {each.id for each in await database.run(retention.kept_messages(clock(), START, 10))}
    assert kept == {invoice, young}
    assert {news, note} & kept == set()
    dry, wet = reversed(await database.run(retention.list_runs(10)))
    assert (dry.is_dry, wet.is_dry, wet.messages, wet.policy) == (True, False, 2, policy.as_json())


START = Cursor(ManualClock()() - timedelta(days=3650), UUID(int=0))


class Dying:
    """A database that a process reaches so many times, and then is killed."""

    def __init__(self, database: Database, left: int) -> None:
        self._database = database
        self._left = left
        self.dialect: Dialect = database.dialect
        self.subscribe = database.subscribe
        self.close = database.close

    async def run(self, transaction: Transaction[T]) -> T:
        self._left -= 1
        if self._left < 0:
            raise InjectedFault("killed")
        return await self._database.run(transaction)


async def test_a_run_that_is_killed_anywhere_leaves_no_message_half_pruned_and_the_next_ends_it(
    database: Database, clock: ManualClock
):
    for number in range(6):
        await secret_mail(database, clock, number)
    clock.forward(366 * DAY)
    left = list[int]()
    for transactions in range(1, 100):
        try:
            await Retention(Dying(database, transactions), YEAR, clock, batch=2).prune(signed())
        except InjectedFault:
            left.append(len(await database.run(retention.kept_messages(clock(), START, 10))))
            assert await found(database, SECRET) == left[-1]
        else:
            break
    assert left == sorted(left, reverse=True)
    assert set(left) >= {6, 4, 2}
    assert await database.run(retention.kept_messages(clock(), START, 10)) == []
    entries = await database.run(history_of("retention.prune"))
    assert sum(each.after["messages"] for each in entries if each.after) == 6


async def test_a_category_that_only_the_text_tells_keeps_a_message_as_long_as_any_other(
    database: Database, clock: ManualClock
):
    """Both the categories that were stored with it, and, for mail from before those, its text."""
    policy = RetentionPolicy(full_days=30, categories={"finance": 0})
    await keep_account(database, clock())
    stored = await keep_mail(database, clock, 1, sender="shop@store.example")
    older = await keep_mail(database, clock, 2, sender="shop@store.example")
    await database.run(_with_category(stored, "finance"))
    await database.run(_with_text(older, "Your invoice 4711: amount due 12.00 EUR. Payment received, thank you."))
    clock.forward(40 * DAY)
    assert (await Retention(database, policy, clock).prune(signed())).messages == 0
    assert (await Retention(database, RetentionPolicy(full_days=30), clock).prune(signed())).messages == 2


@transaction
def _with_category(id: UUID, category: str) -> Script[None]:
    yield sql("insert_message_categories", id, [category])


@transaction
def _with_text(id: UUID, text: str) -> Script[None]:
    yield Text(f"UPDATE messages SET body_text = '{text}' WHERE id = '{id}'")
