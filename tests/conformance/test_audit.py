"""The audit log: entries are added, read newest first, and cannot be changed by anyone who speaks SQL."""

from dataclasses import replace
from pathlib import Path

import pytest

from postroom.core.errors import BadInput, ConstraintBroken
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import LONGEST_TEXT, AuditEntry, AuditView, auditing, list_audit, record_audit
from support.clocks import ManualClock
from support.store.dump import dump

ENTRY = AuditEntry(
    id=new_id(),
    actor="token:1",
    role="admin",
    action="queue.replay",
    object_type="queue",
    object_id="gateway",
    before={"replayed": 0},
    after={"replayed": 3, "kinds": ["deploy.failed", "ü"]},
    reason="asked for",
)


def another(**changes: str) -> AuditEntry:
    return replace(ENTRY, id=new_id(), **changes)


@transaction
def raw(text: str) -> Script[None]:
    yield Text(text)


async def test_an_entry_is_kept_as_it_was_written(database: Database, clock: ManualClock) -> None:
    await database.run(record_audit(ENTRY, clock()))
    (found,) = await database.run(list_audit(10))
    assert found == AuditView(
        found.seq,
        ENTRY.id,
        clock(),
        "token:1",
        "admin",
        "queue.replay",
        "queue",
        "gateway",
        {"replayed": 0},
        {"replayed": 3, "kinds": ["deploy.failed", "ü"]},
        "asked for",
    )


async def test_what_did_not_change_has_no_before_and_after(database: Database, clock: ManualClock) -> None:
    await database.run(record_audit(replace(ENTRY, before=None, after=None, reason=None), clock()))
    (found,) = await database.run(list_audit(10))
    assert (found.before, found.after, found.reason) == (None, None, None)


async def test_entries_come_newest_first_page_by_page(database: Database, clock: ManualClock) -> None:
    entries = [another() for _ in range(5)]
    for entry in entries:
        await database.run(record_audit(entry, clock()))
    newest = [entry.id for entry in reversed(entries)]
    first = await database.run(list_audit(2))
    assert [each.id for each in first] == newest[:2]
    rest = await database.run(list_audit(10, before_seq=first[-1].seq))
    assert [each.id for each in rest] == newest[2:]
    assert await database.run(list_audit(10, before_seq=rest[-1].seq)) == []


async def test_entries_are_chosen_by_actor_and_action(database: Database, clock: ManualClock) -> None:
    for actor, action in (("a", "x"), ("a", "y"), ("b", "x")):
        await database.run(record_audit(another(actor=actor, action=action), clock()))

    async def chosen(actor: str | None = None, action: str | None = None) -> list[tuple[str, str]]:
        found = await database.run(list_audit(10, actor=actor, action=action))
        return [(each.actor, each.action) for each in found]

    assert await chosen(actor="a") == [("a", "y"), ("a", "x")]
    assert await chosen(action="x") == [("b", "x"), ("a", "x")]
    assert await chosen(actor="b", action="x") == [("b", "x")]
    assert await chosen(actor="b", action="y") == []


async def test_a_transaction_that_fails_leaves_no_entry(database: Database, clock: ManualClock) -> None:
    @transaction
    def fails() -> Script[None]:
        yield from auditing(ENTRY, clock())
        raise BadInput("it", "is wrong", "do it right")

    with pytest.raises(BadInput):
        await database.run(fails())
    assert await database.run(list_audit(10)) == []


@pytest.mark.parametrize(
    "name", ["a\0b", "\ud800", "x" * 100_000, "'; DROP TABLE audit; --", "\x1b[2J"], ids=lambda name: ascii(name)[:12]
)
async def test_a_hostile_name_neither_loses_its_entry_nor_does_anything(
    database: Database, clock: ManualClock, name: str
) -> None:
    await database.run(record_audit(another(actor=name, object_id=name, reason=name), clock()))
    (found,) = await database.run(list_audit(10))
    assert found.actor == found.object_id == found.reason
    assert 0 < len(found.actor) <= LONGEST_TEXT


REFUSED = {
    "a change": "UPDATE audit SET actor = 'nobody'",
    "a change of one": "UPDATE audit SET reason = NULL WHERE actor = 'token:1'",
    "a deletion": "DELETE FROM audit",
    "a deletion of one": "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
    "an upsert": """
        INSERT INTO audit (id, at, actor, role, action, object_type, object_id)
        SELECT id, at, 'nobody', role, action, object_type, object_id FROM audit WHERE true
        ON CONFLICT (id) DO UPDATE SET actor = excluded.actor""",
}
REFUSED_BY_SQLITE = {
    "a replacement": """
        INSERT OR REPLACE INTO audit (id, at, actor, role, action, object_type, object_id)
        SELECT id, at, 'nobody', role, action, object_type, object_id FROM audit""",
    "a replacement by number": """
        REPLACE INTO audit (seq, id, at, actor, role, action, object_type, object_id)
        SELECT seq, hex(randomblob(16)), at, 'nobody', role, action, object_type, object_id FROM audit""",
    "a change that replaces": "UPDATE OR REPLACE audit SET actor = 'nobody'",
}
REFUSED_BY_POSTGRES = {
    "emptying": "TRUNCATE audit",
    "emptying with others": "TRUNCATE audit, tokens RESTART IDENTITY CASCADE",
    "a merge": "MERGE INTO audit USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE",
}


REFUSED_TO_REPLICAS = ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit", "TRUNCATE audit")


@pytest.mark.parametrize("what", [*REFUSED, *REFUSED_BY_SQLITE, *REFUSED_BY_POSTGRES])
async def test_the_database_itself_refuses_to_change_the_log(database: Database, clock: ManualClock, what: str) -> None:
    ours = REFUSED_BY_SQLITE if database.dialect == "sqlite" else REFUSED_BY_POSTGRES
    text = REFUSED.get(what) or ours.get(what)
    if text is None:
        return  # the other database's words
    for entry in (ENTRY, another()):
        await database.run(record_audit(entry, clock()))
    before = await dump(database)
    with pytest.raises(ConstraintBroken, match="append-only"):
        await database.run(raw(text))
    assert await dump(database) == before


@pytest.mark.parametrize("text", REFUSED_TO_REPLICAS)
async def test_postgres_refuses_it_also_to_a_session_without_ordinary_triggers(
    postgres_url: str, tmp_path: Path, clock: ManualClock, text: str
) -> None:
    database = await open_database(tmp_path, postgres_url)
    await database.run(record_audit(ENTRY, clock()))
    with pytest.raises(ConstraintBroken, match="append-only"):
        await database.run(raw(f"SET LOCAL session_replication_role = replica; {text}"))
    assert len(await database.run(list_audit(10))) == 1
    await database.close()
