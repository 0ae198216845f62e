"""Migrations: each applied once, all or nothing, and never onto a schema that is not ours."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from postroom.core.errors import Conflict, NotFound, SchemaMismatch, StoreError, TookTooLong
from postroom.core.lifecycle import DELIVERY, RecipientState
from postroom.intake.intake import Intake
from postroom.store.accounts.accounts import list_accounts
from postroom.store.actions.approvals import list_waiting
from postroom.store.backfill.backfill import backfill_found
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import Migration, applied_migrations, apply, migrate, migrations, pending
from postroom.store.engine.opening import connect_database
from postroom.store.intake.connector_requests import NewRequest, ask_connector, load_request
from postroom.store.jobs import jobs as store
from postroom.store.mail.mail import ACTS_ON_ALL
from postroom.store.mail.mail_changes import Change, apply_changes
from postroom.store.mail.simulation import BEGINNING, MessageSelection, NeededFields, past_after
from postroom.store.outbound import outbound, senders
from support.faults import FailingAt, InjectedFault
from support.store.dump import dump

Open = Callable[[], Database]
MORE = Migration(9000, "more", "CREATE TABLE more_things (n integer); CREATE TABLE even_more (n integer)")
LONG = Migration(9000, "long", "SELECT pg_sleep(0.4)")
BROKEN = Migration(9000, "broken", "CREATE TABLE half_done (n integer); SELECT * FROM no_such_table")


@pytest.fixture
async def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a database that nobody has migrated yet, as often as asked."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    opened: list[Database] = []

    def open() -> Database:
        opened.append(connect_database(tmp_path, url))
        return opened[-1]

    yield open
    for database in opened:
        await database.close()


both = pytest.mark.parametrize("opening", ["sqlite", "postgres"], indirect=True)


def _names(database: Database) -> list[str]:
    return [each.name for each in migrations(database.dialect)]


async def _with(database: Database, migration: Migration) -> bool:
    known = (*migrations(database.dialect), migration)
    return await database.run(apply(migration, database.dialect, known))


@transaction
def laying(*texts: str) -> Script[None]:
    for text in texts:
        yield Text(text)


def mail_of(account: UUID, ids: dict[str, UUID], now: str) -> list[str]:
    """An account with messages, as a database of the eighth migration holds them."""
    thread = new_id()
    return [
        f"INSERT INTO accounts (id, provider, endpoint_identity, email, state, created_at, updated_at) "
        f"VALUES ('{account}', 'gmail', 'me', 'me@x.example', 'active', '{now}', '{now}')",
        f"INSERT INTO threads (id, account_id, provider_thread_id, subject, last_message_at, created_at, updated_at) "
        f"VALUES ('{thread}', '{account}', 't', '', '{now}', '{now}', '{now}')",
        *(
            "INSERT INTO messages (id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, "
            "policy_tier, sender, subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, "
            f"created_at, updated_at) VALUES ('{id}', '{account}', '{thread}', '{new_id()}', '{name}', 'full', "
            f"""'default', 'a@b.example', '', '[]', '["UNREAD"]', '', '', false, '{now}', '{now}', '{now}')"""
            for name, id in ids.items()
        ),
    ]


@both
async def test_every_migration_is_applied_once(opening: Open) -> None:
    database = opening()
    assert await migrate(database) == _names(database)
    after = await dump(database)
    assert await migrate(database) == []
    assert await dump(database) == after
    applied = await database.run(applied_migrations())
    assert {version: name for version, (name, _) in applied.items()} == {
        each.version: each.name for each in migrations(database.dialect)
    }


@both
async def test_what_is_pending_is_reported_without_changing_anything(opening: Open) -> None:
    database = opening()
    before = await dump(database)
    assert await pending(database) == _names(database)
    assert await dump(database) == before
    await migrate(database)
    assert await pending(database) == []


@both
async def test_a_migration_interrupted_anywhere_leaves_nothing(opening: Open) -> None:
    database = opening()
    empty = await dump(database)
    known = migrations(database.dialect)
    steps = 4  # the table of migrations, what it holds, the migration itself, and its entry
    for n in range(1, steps + 2):
        with pytest.raises(InjectedFault):
            await FailingAt(database, n).run(apply(known[0], database.dialect, known))
        assert await dump(database) == empty
        assert await pending(database) == _names(database)
    assert await FailingAt(database, steps + 2).run(apply(known[0], database.dialect, known))
    assert await migrate(database) == _names(database)[1:]


@both
async def test_a_migration_that_breaks_half_way_leaves_nothing(opening: Open) -> None:
    database = opening()
    await migrate(database)
    before = await dump(database)
    with pytest.raises(StoreError):
        await _with(database, BROKEN)
    assert await dump(database) == before
    assert await pending(database) == []
    assert await database.run(store.count_jobs()) == {}


@both
async def test_two_processes_that_migrate_at_once_apply_each_once(opening: Open) -> None:
    sides = [opening() for _ in range(3)]
    applied = await asyncio.gather(*(migrate(side) for side in sides))
    assert sorted(name for names in applied for name in names) == sorted(_names(sides[0]))


@both
async def test_a_migration_is_applied_on_top_of_the_earlier_ones(opening: Open) -> None:
    database = opening()
    await migrate(database)
    assert await _with(database, MORE)
    assert not await _with(database, MORE)
    assert {"more_things", "even_more"} <= {name.split(".")[-1] for name in await dump(database)}


@both
async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(opening: Open) -> None:
    database = opening()
    await migrate(database)
    await _with(database, MORE)
    before = await dump(database)
    changed = Migration(MORE.version, MORE.name, MORE.text + "; SELECT 1")
    with pytest.raises(SchemaMismatch, match="9000 more was changed after it was applied"):
        await _with(database, changed)
    assert await dump(database) == before


@both
async def test_a_database_from_the_future_is_refused_by_all_that_open_it(opening: Open) -> None:
    database = opening()
    await migrate(database)
    await _with(database, MORE)
    before = await dump(database)
    for refused in (migrate, pending):
        with pytest.raises(SchemaMismatch, match=r"newer Postroom .*upgrade Postroom"):
            await refused(database)
    assert await dump(database) == before


@both
async def test_requests_to_connectors_survive_that_their_kinds_become_more(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:6]:
        await database.run(apply(each, database.dialect, known))
    now = datetime(2026, 11, 15, 8, tzinfo=UTC)
    asked = NewRequest(new_id(), "gmail:user:ada@example.com", "search", {"query": "x"}, now + timedelta(minutes=5))
    await database.run(ask_connector(asked, now))
    more = asked._replace(id=new_id(), kind="ingest")
    with pytest.raises(StoreError):
        await database.run(ask_connector(more, now))
    before = await database.run(load_request(asked.id))
    await migrate(database)
    assert await database.run(load_request(asked.id)) == before
    assert await database.run(ask_connector(asked._replace(id=new_id()), now)) == asked.id
    assert await database.run(ask_connector(more, now)) == more.id
    with pytest.raises(StoreError):
        await database.run(ask_connector(asked._replace(id=new_id(), kind=cast("Any", "dance")), now))


@both
async def test_messages_that_are_here_already_keep_the_labels_they_had_before_our_first_action(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:8]:
        await database.run(apply(each, database.dialect, known))
    account, now = new_id(), "2026-11-15T08:00:00.000000Z"
    ids = {"untouched": new_id(), "archived": new_id()}
    texts = mail_of(account, ids, now)
    texts += [
        "INSERT INTO actions (id, account_id, message_id, actor, action_type, parameters_json, state, action_hash, "
        f"pre_image_json, created_at, updated_at) VALUES ('{new_id()}', '{account}', '{ids['archived']}', 'rule', "
        f"""'{action}', '{{}}', 'executing', 'h', '{{"labels": {labels}}}', '{at}', '{at}')"""
        for action, labels, at in (("star", '["UNREAD"]', now.replace("08", "09")), ("archive", '["INBOX"]', now))
    ]

    await database.run(laying(*texts))
    await migrate(database)
    found = await database.run(
        past_after(BEGINNING, MessageSelection(datetime(2000, 1, 1, tzinfo=UTC), 9), NeededFields(), 9, 9)
    )
    labels = {each.message.provider_message_id: each.message.facts.labels for each in found}
    assert labels == {"untouched": {"UNREAD"}, "archived": {"INBOX"}}
    read = [Change(name, frozenset(), frozenset({"UNREAD"})) for name in ids]
    await database.run(apply_changes("me", read, datetime(2026, 11, 16, tzinfo=UTC)))
    again = await database.run(
        past_after(BEGINNING, MessageSelection(datetime(2000, 1, 1, tzinfo=UTC), 9), NeededFields(), 9, 9)
    )
    assert {each.message.provider_message_id: each.message.facts.labels for each in again} == labels


REBUILT = ("schema_migrations", "sqlite_sequence", "outbound", "messages", "message_", "search_backlog")


@both
async def test_actions_that_nobody_has_approved_yet_still_wait_though_their_state_was_renamed(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:18]:
        await database.run(apply(each, database.dialect, known))
    account, message, now = new_id(), new_id(), "2026-11-15T08:00:00.000000Z"
    waiting, done = new_id(), new_id()
    columns = "id, account_id, message_id, actor, action_type, parameters_json, state, action_hash, undo_hint_json"
    actions = [
        f"INSERT INTO actions ({columns}, created_at, updated_at) VALUES ('{id}', '{account}', '{message}', 'user', "
        f"'forward', '{{}}', '{state}', 'hash', '{{}}', '{now}', '{now}')"
        for id, state in ((waiting, "approved_pending"), (done, "completed"))
    ]
    links = [
        "INSERT INTO action_links (id, cause_action_id, effect_action_id, relation_type, created_at) "
        f"VALUES ('{new_id()}', '{waiting}', '{done}', 'related', '{now}')",
        "INSERT INTO approval_notices (action_id, channel, reference, sent_at) "
        f"VALUES ('{waiting}', 'webhook', 'somewhere', '{now}')",
    ]
    await database.run(laying(*mail_of(account, {"one": message}, now), *actions, *links))
    before = await dump(database)
    await migrate(database)
    after = await dump(database)
    (found,) = await database.run(list_waiting(9))
    assert (found.id, found.state) == (waiting, "approved_pending")
    for name, rows in before.items():
        # Messages have more columns since, SQLite itself notes the tables that count their ids, and the search index is
        # built anew.
        if not name.split(".")[-1].startswith(REBUILT):
            rows_after = after["job_rows" if name == "jobs" else name]
            # Actions and accounts have more columns since, the last.
            if name.split(".")[-1] in ("actions", "accounts"):
                assert all(new.startswith(old[:-1]) for old, new in zip(rows, rows_after, strict=True)), name
            else:
                assert rows_after == rows, name
    with pytest.raises(StoreError):
        await database.run(laying("UPDATE actions SET state = 'awaiting_approval'"))
    with pytest.raises(StoreError):
        await database.run(laying("DELETE FROM actions"))


@both
async def test_accounts_that_were_there_before_go_on_acting(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in takewhile(lambda each: "acting" not in each.name, known):
        await database.run(apply(each, database.dialect, known))
    await database.run(laying(*mail_of(new_id(), {}, "2026-11-15T08:00:00.000000Z")))
    await migrate(database)
    assert [each.acts_from for each in await database.run(list_accounts())] == [ACTS_ON_ALL]


@both
async def test_what_backfills_have_brought_in_before_is_counted_by_category_and_year(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:21]:
        await database.run(apply(each, database.dialect, known))
    ids, job, now = {"one": new_id(), "two": new_id()}, new_id(), "2026-11-15T08:00:00.000000Z"
    sent = dict(zip(ids.values(), ("2023-12-31T23:59:59.000000Z", "2024-01-01T00:00:00.000000Z"), strict=True))
    texts = [
        "INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, date_from, date_to, created_at, updated_at) "
        f"VALUES ('{job}', 'gmail', 'me', '2023-01-01', '2024-12-31', '{now}', '{now}')",
        *(f"UPDATE messages SET sent_at = '{at}' WHERE id = '{id}'" for id, at in sent.items()),
        *(f"INSERT INTO message_categories VALUES ('{id}', 'finance')" for id in ids.values()),
        *(
            "INSERT INTO backfill_mail (inbox_id, job_id, message_id, waits, accepted_at) "
            f"VALUES ('{new_id()}', '{job}', '{id}', false, '{now}')"
            for id in ids.values()
        ),
    ]
    await database.run(laying(*mail_of(new_id(), ids, now), *texts))
    await migrate(database)
    assert await database.run(backfill_found(job)) == [("finance", 2024, 1), ("finance", 2023, 1)]


# As they were called before 0027, and are called since.
OLD_STATES: dict[str, RecipientState] = {
    "queued": "queued",
    "sending": "sending",
    "deferred": "deferred",
    "unknown": "unknown",
    "delivered": "sent",
    "bounced": "bounced",
    "expired": "expired",
    "canceled": "canceled",
}


@both
async def test_outgoing_mail_in_every_state_is_found_again_with_its_recipients_text_and_draft(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:19]:
        await database.run(apply(each, database.dialect, known))
    account, message, now = new_id(), new_id(), "2026-11-15T08:00:00.000000Z"
    texts, ids = mail_of(account, {"one": message}, now), {state: (new_id(), new_id()) for state in OLD_STATES}
    for place, (state, (id, action)) in enumerate(ids.items()):
        held = f"'{id}', '{now.replace('08', '10')}'" if state == "sending" else "NULL, NULL"
        has_ended = state in DELIVERY.terminal or state == "delivered"
        texts += [
            "INSERT INTO actions (id, account_id, message_id, actor, action_type, parameters_json, state, action_hash, "
            f"created_at, updated_at) VALUES ('{action}', '{account}', '{message}', 'rule', 'forward', '{{}}', "
            f"'executing', 'h', '{now.replace('08', '07')}', '{now}')",
            "INSERT INTO outbound (id, account_id, action_id, kind, recipients_json, subject, mime, thread_id, state, "
            "attempts, lease_token, lease_until, not_before, draft_id, draft_message_id, sent_message_id, error, "
            f"created_at, updated_at, ended_at, source_key) VALUES ('{id}', '{account}', '{action}', 'forward', "
            f"""'["b@x.example", "c@x.example"]', 'About {state}', '{"" if has_ended else "Subject: " + state}', """
            f"'t-1', '{state}', {place}, {held}, '{now}', "
            + ("'r-1', '18c0', " if state in ("sending", "unknown", "delivered") else "NULL, NULL, ")
            + ("'18c1', " if state == "delivered" else "NULL, ")
            + ("'503', " if state in ("deferred", "bounced", "canceled") else "NULL, ")
            + f"'{now}', '{now}', {repr(now) if has_ended else 'NULL'}, 'a-key')",
        ]
    await database.run(laying(*texts))
    await migrate(database)
    views = {each.state: each for each in await database.run(outbound.list_mail(99))}
    moment = datetime(2026, 11, 15, 8, tzinfo=UTC)
    for place, (state, (id, action)) in enumerate(ids.items()):
        after = OLD_STATES[state]
        found, has_draft = views[after], state in ("sending", "unknown", "delivered")
        error = "503" if state in ("deferred", "bounced", "canceled") else None
        assert (found.id, found.action_id, found.account_id, found.kind) == (id, action, account, "forward")
        assert (found.recipients, found.subject) == (("b@x.example", "c@x.example"), f"About {state}")
        assert (found.attempts, found.not_before, found.error) == (place, moment, error)
        assert (found.created_at, found.updated_at) == (moment - timedelta(hours=1), moment)
        assert found.ended_at == (moment if found.state in DELIVERY.terminal else None)
        assert found.draft_id == ("r-1" if has_draft else None)
        assert found.sent_message_id == ("18c1" if state == "delivered" else None)
        reply = None if state == "canceled" else error
        assert await database.run(outbound.list_recipients(id)) == [
            outbound.RecipientView(to, after, place, moment, reply) for to in found.recipients
        ]
        if found.state in DELIVERY.terminal:
            with pytest.raises(NotFound):
                await database.run(outbound.load_content(id))
        else:
            assert await database.run(outbound.load_content(id)) == f"Subject: {state}".encode()
    later = moment + timedelta(hours=3)
    leased = await database.run(outbound.lease_mail(new_id(), 99, later, later + timedelta(minutes=1)))
    assert {each.id for each in leased} == {ids[state][0] for state in ("queued", "sending", "deferred")}
    (held,) = [each for each in leased if each.id == ids["sending"][0]]
    assert (held.draft_id, held.draft_message_id, held.thread_id) == ("r-1", "18c0", "t-1")
    assert (held.asked_at, held.admitted_at) == (moment - timedelta(hours=1), moment)
    (rows,) = [rows for name, rows in (await dump(database)).items() if name.endswith("outbound_mail")]
    assert all("'x.example', 'x.example', 'me@x.example', 'transactional', 'me@x.example'" in row for row in rows)
    (owner,) = await database.run(senders.list_senders(later))
    assert (owner.username, owner.domain, owner.tenant) == ("me@x.example", "x.example", "x.example")
    assert (owner.addresses, owner.plan, owner.created_at) == (("me@x.example",), "standard", moment)


# What a migration would meet, or leave behind, that writes rows of messages.
MARKED: dict[str, str] = {
    "sqlite": "CREATE TRIGGER untouched BEFORE UPDATE ON messages BEGIN SELECT RAISE(ABORT, 'written anew'); END",
    "postgres": "CREATE TABLE written_where AS "
    "SELECT pg_relation_filenode('messages') AS file, m.ctid AS place, m.id FROM messages m",
}
STILL_THERE = """
    SELECT 1 / (SELECT count(*) FROM written_where w JOIN messages m ON m.id = w.id AND m.ctid = w.place
        AND w.file = pg_relation_filenode('messages'))"""


@both
async def test_no_migration_writes_stored_mail_again_however_much_there_is(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:8]:
        await database.run(apply(each, database.dialect, known))
    await database.run(laying(*mail_of(new_id(), {"one": new_id()}, "2026-11-15T08:00:00.000000Z")))
    await database.run(laying(MARKED[database.dialect]))
    await migrate(database)
    if database.dialect == "postgres":
        await database.run(laying(STILL_THERE))


def long_event(number: int, key: str | None = None) -> dict[str, Any]:
    """An event whose identity is longer than a key may be."""
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "webhook:ci"},
        "event": {"external_event_id": f"{number}-".ljust(510, "é"), "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "ci"},
        "payload": {"raw": {}, "normalized_text": f"build {number}"},
        "control": {} if key is None else {"idempotency_key": key},
    }


def known_of_old(event: dict[str, Any], key: str, id: UUID) -> str:
    """A key as a database of the second migration holds it, whose message was pruned."""
    source = event["source"]
    return (
        "INSERT INTO inbox_keys (key, inbox_id, channel, provider, endpoint_identity, external_event_id, sender) "
        f"VALUES ('{key}', '{id}', '{source['channel']}', '{source['provider']}', '{source['endpoint_identity']}', "
        f"'{event['event']['external_event_id']}', '{event['sender']['identity']}')"
    )


@both
async def test_events_with_long_identities_are_still_known_after_all_migrations(opening: Open) -> None:
    database, ids = opening(), [new_id(), new_id()]
    known = migrations(database.dialect)
    for each in known[:2]:
        await database.run(apply(each, database.dialect, known))
    await database.run(laying(*(known_of_old(long_event(n), f"key-{n}", id) for n, id in enumerate(ids))))
    await migrate(database)
    intake = Intake(database, None)
    by_event, by_key = await intake.ingest(long_event(0)), await intake.ingest(long_event(1, "key-1"))
    assert [(each.request_id, each.duplicate) for each in (by_event, by_key)] == [(id, True) for id in ids]
    with pytest.raises(Conflict):
        await intake.ingest(long_event(2, "key-1"))
    assert not (await intake.ingest(long_event(3))).duplicate


@both
async def test_what_an_earlier_migration_has_forgotten_is_known_again_while_the_inbox_tells_of_it(
    opening: Open,
) -> None:
    database = opening()
    known = migrations(database.dialect)
    for each in known[:10]:
        await database.run(apply(each, database.dialect, known))
    intake = Intake(database, None)
    first = await intake.ingest(long_event(0, "key-0"))
    await database.run(laying("DELETE FROM inbox_events", "DELETE FROM inbox_keys"))
    await migrate(database)
    again = await intake.ingest(long_event(0))
    assert (again.request_id, again.duplicate) == (first.request_id, True)
    with pytest.raises(Conflict):
        await intake.ingest(long_event(1, "key-0"))


async def test_a_migration_takes_as_long_as_it_takes(postgres_url: str, tmp_path: Path) -> None:
    """Also where the server ends statements that take long."""
    hasty = connect_database(tmp_path, f"{postgres_url}?statement_timeout=300")
    try:
        first = migrations("postgres")[0]
        await hasty.run(apply(first, "postgres", (first,)))
        assert await hasty.run(apply(LONG, "postgres", (first, LONG)))
        with pytest.raises(TookTooLong):
            await hasty.run(laying(LONG.text))
    finally:
        await hasty.close()


@both
async def test_work_on_a_database_that_was_not_migrated_is_refused(opening: Open) -> None:
    database = opening()
    with pytest.raises(StoreError):
        await database.run(store.count_jobs())


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_both_databases_have_the_same_migrations(dialect: Any) -> None:
    ours = [(each.version, each.name) for each in migrations(dialect)]
    assert ours == [(each.version, each.name) for each in migrations("sqlite")]
    assert [version for version, _ in ours] == list(range(1, len(ours) + 1))
