"""Mail as people see it: found by an id of any kind, listed with what was done, and told as a story."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.action import action_hash
from postroom.core.actions.safety import Policy
from postroom.core.errors import BadInput, NotFound, SafetyRefused
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.short_ids import short_id
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_actions import read_actions, request_action, wait_for_outcome
from postroom.operations.mail.mail_ids import find_action, find_message
from postroom.operations.mail.mail_lines import MailLine, MailQuestion, list_by_date, list_lines
from postroom.operations.mail.mail_page import show_mail
from postroom.store.actions import decisions
from postroom.store.actions.protection import protect
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail.contacts import note_correspondents
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail import load_message
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.people.audit import Signature
from postroom.store.rules.outcomes import outcomes_of
from support.clocks import ManualClock
from support.mail import OWNER, approved_and_done, carried_out, done, keep_account, keep_mail, story_of

ADA = "cli:ada"


def signed() -> Signature:
    return Signature(new_id(), ADA, "admin")


async def deciding(database: Database, clock: ManualClock) -> Job:
    """The job that decides about the message that was stored last."""
    token = new_id()
    await database.run(jobs.open_lease(token, "worker", clock(), clock() + timedelta(minutes=1)))
    (job,) = await database.run(jobs.claim(token, 1, clock()))
    return job


async def decide(
    database: Database,
    clock: ManualClock,
    message_id: UUID,
    action_type: Any = "archive",
    parameters: dict[str, Any] | None = None,
    *,
    state: Any = "queued",
    shadows: tuple[decisions.Decision, ...] = (),
    **options: Any,
) -> UUID | None:
    """Decide about a message as a rule or the model does; return the id of its action."""
    account_id = (await database.run(load_message(message_id))).account_id
    source = options.pop("source", "deterministic")
    rationale = options.pop("rationale", "the first rule to match")
    confidence = options.pop("confidence", 1.0)
    decision = decisions.Decision(
        new_id(), account_id, message_id, source, action_type, parameters or {}, confidence, rationale, **options
    )
    job = await deciding(database, clock)
    if action_type == "none":
        await database.run(decisions.record_decision(job, decision, None, None, clock(), shadows))
        return None
    action_id, carry_out = new_id(), new_job(CATALOGUE, "action.gmail", {}, priority=100)
    follow_up = carry_out if state == "queued" else None
    expires_at = None if state == "queued" else clock() + timedelta(days=1)
    job_id = None if follow_up is None else follow_up.id
    hashed = action_hash(message_id, action_type, parameters or {})
    new = decisions.NewAction(action_id, "rule", state, hashed, job_id, expires_at)
    await database.run(decisions.record_decision(job, decision, new, follow_up, clock(), shadows))
    return action_id


async def listed(database: Database, most: int = 10, *, only_kept: bool = False, **wanted: Any) -> Sequence[MailLine]:
    return (await list_by_date(database, MailQuestion(**wanted), most, only_kept=only_kept)).lines


async def story(database: Database, name: str) -> str:
    return "\n".join(line.text for line in await story_of(database, name))


async def test_mail_is_found_by_an_id_of_any_kind(database: Database, clock: ManualClock):
    headers = [("Message-ID", "<one@lindqvist.example>")]
    id = await keep_mail(database, clock, 1, headers=headers, event_id="18c2f0a1b2c3d4e5")
    await keep_mail(database, clock, 2)
    action_id = await done(database, clock, id)
    (view,) = [each for each in await database.run(jobs.list_jobs()) if str(id) in each.payload_json]
    fetching = new_job(CATALOGUE, "ingest.gmail", {"message_id": "18c2f0a1b2c3d4e5"}, priority=100)
    await database.run(jobs.enqueue_many([fetching], clock()))
    names = [
        str(id),
        id.hex.upper(),
        short_id(id),
        short_id(id)[:6],
        short_id(id).upper(),
        f" {short_id(id)} ",
        str(id)[-12:],
        id.hex[:20],
        "18c2f0a1b2c3d4e5",
        "<one@lindqvist.example>",
        "one@lindqvist.example",
        str(action_id),
        short_id(action_id),
        str(view.id),
        str(fetching.id),
    ]
    assert [name for name in names if await find_message(database, name) != id] == []
    assert await find_action(database, short_id(action_id)) == action_id
    assert await find_action(database, str(action_id)) == action_id


async def test_an_unknown_id_is_an_error_that_says_where_ids_are_shown(database: Database, clock: ManualClock):
    id = await keep_mail(database, clock)
    unknown = [str(new_id()), "18c2f0a1b2c3d4e5", "nobody@example.com", "x", "zz" * 200, "%", "_" * 8, short_id(id)[:3]]
    for name in unknown:
        with pytest.raises(NotFound, match="`postroom mail list`"):
            await find_message(database, name)
    for name in ("", "  ", "a\0b", "x" * 1000):
        with pytest.raises(BadInput):
            await find_message(database, name)
    with pytest.raises(NotFound):
        await find_action(database, "0123abcd")
    with pytest.raises(BadInput, match="not the id of an action"):
        await find_action(database, "archive")


async def test_an_ambiguous_id_is_refused_with_ids_that_are_not(database: Database, clock: ManualClock):
    first, second = (UUID(f"019a8f00-0000-7000-8000-{end}") for end in ("00003fa2c1d0", "11113fa2c1ff"))
    for number, id in enumerate((first, second)):
        headers = [("Message-ID", "<both@lindqvist.example>")]
        await keep_mail(database, clock, number, message_id=id, headers=headers)
    with pytest.raises(BadInput, match="'3fa2c1' is part of 2 ids; give more of it: 3fa2c1"):
        await find_message(database, "3fa2c1")
    assert await find_message(database, "3fa2c1d") == first
    assert await find_message(database, "3fa2c1ff") == second
    third = UUID("019a8f00-0000-7000-8000-22223fa2c1ff")
    await keep_mail(database, clock, 3, message_id=third)
    with pytest.raises(BadInput, match=r"is part of 2 ids; give more of it: \w{4}3fa2c1ff, \w{4}3fa2c1ff"):
        await find_message(database, "3fa2c1ff")
    assert await find_message(database, "22223fa2c1ff") == third
    with pytest.raises(BadInput, match="is the id of 2 messages; give one of"):
        await find_message(database, "both@lindqvist.example")


async def test_the_message_id_of_mail_that_is_no_longer_kept_is_forgotten(database: Database, clock: ManualClock):
    await keep_mail(database, clock, headers=[("Message-ID", "<one@lindqvist.example>")])
    assert await find_message(database, "<one@lindqvist.example>")
    await database.run(_pruned())
    with pytest.raises(NotFound):
        await find_message(database, "<one@lindqvist.example>")


@transaction
def _pruned() -> Script[None]:
    yield Text("UPDATE messages SET headers_json = '[]', body_text = '', pruned_at = created_at")


async def test_mail_is_listed_with_what_was_done_and_by_whom(database: Database, clock: ManualClock):
    days = (f"2026-11-1{day}T08:00:00Z" for day in range(6))
    senders = [("From", "Mara Lindqvist <mara@lindqvist.example>")]
    kept = await keep_mail(database, clock, 1, subject="Kept", sent_at=next(days), policy_tier="interactive")
    await decide(database, clock, kept, "none", source="none", rationale="no rule matched")
    archived = await keep_mail(database, clock, 2, subject="Archived", sent_at=next(days), headers=senders)
    action = await decide(database, clock, archived, rule_name="receipts")
    assert action is not None
    await carried_out(database, clock, action)
    own = await keep_mail(database, clock, 3, subject="Own", sent_at=next(days))
    await done(database, clock, own, "user", ADA)
    waiting = await keep_mail(database, clock, 4, subject="Waiting", sent_at=next(days))
    await decide(database, clock, waiting, "trash", state="approved_pending", source="llm")
    new = await keep_mail(database, clock, 5, subject="New", sent_at=next(days), owner="bob@example.org")
    gone = await keep_mail(database, clock, 6, subject="Gone", sent_at=next(days))
    await database.run(apply_changes(f"gmail:user:{OWNER}", [Change("mail-6", deleted=True)], clock()))

    found = await listed(database)
    assert gone not in [each.id for each in found]
    assert [(each.id, each.outcome, each.by) for each in found] == [
        (new, "not decided yet", ""),
        (waiting, "move it to the trash: needs approval", "model 1.00"),
        (own, "archived", "you"),
        (archived, "archived", "rule “receipts”"),
        (kept, "kept", ""),
    ]
    (with_name,) = [each for each in found if each.id == archived]
    assert (with_name.sender_name, with_name.short_id) == ("Mara Lindqvist", short_id(archived))
    assert {each.id for each in await listed(database, only_kept=True)} == {kept, new}
    assert [each.id for each in await listed(database, tier="interactive")] == [kept]
    assert [each.id for each in await listed(database, account="bob@example.org")] == [new]
    assert [each.id for each in await listed(database, 1)] == [new]
    assert len(await listed(database, since=datetime(2026, 11, 13, tzinfo=UTC))) == 2


async def test_the_story_of_mail_that_was_archived_undone_and_archived_by_hand(database: Database, clock: ManualClock):
    await database.run(note_correspondents(["mara@lindqvist.example"], clock()))
    id = await keep_mail(database, clock, policy_tier="high_priority")
    action = await decide(database, clock, id, rule_name="receipts", safety={"verdict": "allow", "reasons": []})
    assert action is not None
    await carried_out(database, clock, action)
    told = await show_mail(database, Policy(), short_id(id))
    text = "\n".join(line.text for line in told.story)
    for said in (
        f"It arrived in {OWNER}, from mara@lindqvist.example.",
        "Its tier is high priority: from a contact.",
        "It was stored in full: no filter asks for less.",
        "The rule 'receipts' matched; it says: archive it.",
        "Safety allowed it.",
        "It was archived.",
        "Now it is in the archive, read.",
    ):
        assert said in text
    assert [line.command for line in told.story if line.command] == [f"undo {short_id(action)}"]
    assert [each.id for each in told.actions if each.can_be_undone] == [action]
    assert "{" not in text

    clock.forward(3600)
    back = Change("mail-1", frozenset({"INBOX"}), frozenset())
    await database.run(apply_changes(f"gmail:user:{OWNER}", [back], clock()))
    assert await database.run(outcomes_of(id))
    text = await story(database, short_id(id))
    assert "Then you moved it back to the inbox yourself, against what had been decided." in text
    assert "Now it is in the inbox, read." in text


async def test_the_story_names_model_confidence_reason_and_approval(database: Database, clock: ManualClock):
    id = await keep_mail(database, clock, headers=[("In-Reply-To", "<x@y.example>")], policy_tier="high_priority")
    action = await decide(
        database,
        clock,
        id,
        state="approved_pending",
        source="llm",
        model="stand-in",
        confidence=0.62,
        rationale="It is an advertisement.",
        safety={"verdict": "approve", "reasons": ["the confidence of 0.62 is under 0.70"]},
    )
    assert action is not None
    told = await story_of(database, str(action))
    text = "\n".join(line.text for line in told)
    for said in (
        "Its tier is high priority: reply to your mail.",
        "No rule matched, so the model stand-in was asked. It says: archive it (62% sure). "
        "Its reason: It is an advertisement.",
        "Safety asked for your approval: the confidence of 0.62 is under 0.70.",
        "It waits for your answer until 20",
    ):
        assert said in text
    assert [line.command for line in told if line.command] == [f"approvals approve {action}"]
    await approved_and_done(database, clock, action)
    text = await story(database, str(action))
    assert f"It was approved by {ADA}." in text
    assert "It was archived." in text


async def test_the_story_of_mail_that_was_kept_refused_or_only_watched(database: Database, clock: ManualClock):
    kept = await keep_mail(database, clock, 1)
    assert "Nothing has been decided about it yet." in await story(database, str(kept))
    account_id = (await database.run(load_message(kept))).account_id
    shadow = decisions.Decision(
        new_id(),
        account_id,
        kept,
        "deterministic",
        "apply_label",
        {"label": "Receipts"},
        1.0,
        "the first rule to match",
        rule_name="new",
        shadow=True,
        safety={"shadow": "rule"},
    )
    await decide(database, clock, kept, "none", source="none", rationale="no rule matched", shadows=(shadow,))
    text = await story(database, str(kept))
    assert "It was left as it is: no rule matched." in text
    assert "The rule 'new' runs in shadow: it would label it “Receipts”." in text

    refused = await keep_mail(
        database, clock, 2, tier="metadata", headers=[("List-Unsubscribe", "<https://x.example>")]
    )
    proposed = {"action": "trash", "parameters": {}}
    await decide(
        database,
        clock,
        refused,
        "none",
        rule_name="cleaner",
        safety={"verdict": "refuse", "reasons": ["the sender is protected"], "proposed": proposed},
    )
    text = await story(database, str(refused))
    assert "Only its headers were stored, not its text, by the filter 'list-unsubscribe'" in text
    assert "The rule 'cleaner' matched; it says: move it to the trash." in text
    assert "Safety refused that, so nothing was done: the sender is protected." in text


async def test_a_person_acts_on_mail_and_waits_for_the_outcome(database: Database, clock: ManualClock):
    account = await keep_account(database, clock())
    await database.run(sync_labels(account.id, [SeenLabel("Label_1", "Receipts", "user")], clock()))
    id = await keep_mail(database, clock)
    await deciding(database, clock)  # out of the way
    steps = read_actions(["archive", "apply_label Receipts"])
    asked = await request_action(Caller(database, signed(), clock), short_id(id), steps, Policy())
    assert (asked.state, asked.what) == ("queued", "queued: it will be archived and labelled “Receipts”")
    assert await wait_for_outcome(database, asked, timedelta(0)) == asked
    assert "You (cli:ada) asked to archive it and label it “Receipts”." in await story(database, str(id))
    await carried_out(database, clock, asked.action_id)
    ended = await wait_for_outcome(database, asked)
    assert (ended.state, ended.what) == ("completed", "archived and labelled “Receipts”")


async def test_a_person_may_not_act_on_protected_mail_or_contradict_themselves(database: Database, clock: ManualClock):
    id = await keep_mail(database, clock)
    await database.run(protect("sender", "mara@lindqvist.example", "a friend", signed(), clock()))
    with pytest.raises(SafetyRefused, match="protected"):
        await request_action(Caller(database, signed(), clock), short_id(id), read_actions(["archive"]), Policy())
    refused = (["star", "unstar"], ["dance"], ["apply_label"], ["archive now"], [], ["star"] * 11, ["snooze never"])
    for texts in refused:
        with pytest.raises(BadInput):
            read_actions(texts)
    (snooze,) = read_actions(["snooze 2w"])
    assert snooze.parameters == {"amount": 14, "units": "days"}


async def test_mail_is_read_and_searched_for_people(database: Database, clock: ManualClock):
    headers = [("cc", "Bob <bob@example.org>"), ("Message-ID", "<one@x.example>")]
    id = await keep_mail(database, clock, subject="Minutes", headers=headers, files=("minutes.pdf",))
    read = await show_mail(database, Policy(), "<one@x.example>")
    assert (read.id, read.text, [each.name for each in read.attachments]) == (id, "Some words.", ["minutes.pdf"])
    assert ("cc", "Bob <bob@example.org>") in read.headers
    found = await list_lines(database, MailQuestion("to:bob has:attachment"), 1)
    assert ([each.short_id for each in found.lines], found.next) == ([short_id(id)], None)
