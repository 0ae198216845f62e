"""What must be true of the inbox after a chaos run, read directly from the tables."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from postroom.core.lifecycle import INBOX
from postroom.core.queue.queues import QueuePolicy
from postroom.store.engine.database import Script, Text, schema_change
from support.crash.evidence import Place
from support.processes import Child

_LOG = {
    "sqlite": (
        """CREATE TABLE chaos_picks (queue TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL,
            tier TEXT NOT NULL, token TEXT NOT NULL, taken_back INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (queue, number))""",
        """CREATE TRIGGER chaos_picked AFTER UPDATE OF state ON inbox_queue WHEN NEW.state = 'leased'
        BEGIN
            INSERT INTO chaos_picks (queue, number, seq, tier, token)
            VALUES (NEW.queue, NEW.turn_json ->> 'number', NEW.seq, NEW.tier, NEW.lease_token);
        END""",
        """CREATE TRIGGER chaos_ran_out AFTER UPDATE OF state ON inbox_queue
        WHEN NEW.state = 'waiting' AND NEW.reason = 'its lease ran out'
        BEGIN
            UPDATE chaos_picks SET taken_back = 1 WHERE queue = OLD.queue AND number = OLD.turn_json ->> 'number';
        END""",
    ),
    "postgres": (
        """CREATE TABLE chaos_picks (queue text NOT NULL, number bigint NOT NULL, seq bigint NOT NULL,
            tier text NOT NULL, token text NOT NULL, taken_back integer NOT NULL DEFAULT 0,
            PRIMARY KEY (queue, number))""",
        """CREATE FUNCTION chaos_note_pick() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.state = 'leased' THEN
                INSERT INTO chaos_picks (queue, number, seq, tier, token)
                VALUES (
                    NEW.queue, (NEW.turn_json::json ->> 'number')::bigint, NEW.seq, NEW.tier, NEW.lease_token::text
                );
            ELSIF NEW.reason = 'its lease ran out' THEN
                UPDATE chaos_picks SET taken_back = 1
                WHERE queue = OLD.queue AND number = (OLD.turn_json::json ->> 'number')::bigint;
            END IF;
            RETURN NULL;
        END $$""",
        """CREATE TRIGGER chaos_picked AFTER UPDATE OF state ON inbox_queue FOR EACH ROW
        EXECUTE FUNCTION chaos_note_pick()""",
    ),
}
_TWICE_OR_NOWHERE = """
    SELECT (SELECT count(*) FROM envelopes) - (SELECT count(*) FROM inbox_queue) - (SELECT count(*) FROM inbox_ends),
        (SELECT count(*) FROM inbox_queue JOIN inbox_ends USING (seq)),
        (SELECT count(*) FROM inbox_queue q LEFT JOIN envelopes e USING (seq) WHERE e.id IS NULL),
        (SELECT count(*) FROM inbox_ends x LEFT JOIN envelopes e USING (seq) WHERE e.id IS NULL)
"""


@schema_change
def note_picks(dialect: str) -> Script[None]:
    """The database itself writes down each message that is leased, in the transaction that leases it."""
    for text in _LOG[dialect]:
        yield Text(text)


class Row(NamedTuple):
    """A message as the tables have it."""

    id: UUID
    queue: str
    tier: str
    name: str
    state: str
    attempts: int
    members: int | None
    copy_of: UUID | None
    linked_to: UUID | None


async def all_rows(place: Place) -> list[Row]:
    found = await place.rows(
        "SELECT id, queue, tier, external_event_id, state, attempts, members, copy_of, linked_to FROM inbox"
    )
    rows = (Row._make(each) for each in found)
    return [
        row._replace(id=_uuid(row.id), copy_of=_optional(row.copy_of), linked_to=_optional(row.linked_to))
        for row in rows
    ]


async def check_nothing_vanished(place: Place) -> Counter[str]:
    """Every message is in exactly one state, and what ended unprocessed is linked to what stands for it."""
    assert await place.rows(_TWICE_OR_NOWHERE) == [(0, 0, 0, 0)]
    rows = await all_rows(place)
    by_id = {row.id: row for row in rows}
    assert len(by_id) == len(rows), "an id stands there twice"
    members = Counter(row.linked_to for row in rows if row.state == "coalesced")
    for row in rows:
        assert row.state in INBOX.states, row
        assert row.state != "coalesced" or by_id[_there(row.linked_to)].members is not None, row
        assert row.state != "duplicate" or _there(row.linked_to) in by_id, row
        assert row.members is None or members[row.id] == row.members, row
    accepted = [row for row in rows if row.members is None]
    states = Counter(row.state for row in accepted)
    assert len(accepted) == sum(states[state] for state in INBOX.states)
    await _check_counts(place, rows)
    await _check_known(place, accepted)
    return states


async def _check_counts(place: Place, rows: Sequence[Row]) -> None:
    """The roll-ups were written with what they count."""
    found = await place.rows("SELECT measure, queue, name, sum(count) FROM rollups GROUP BY measure, queue, name")
    counted = defaultdict[str, Counter[tuple[str, str]]](Counter)
    for measure, queue, name, count in found:
        counted[measure][queue, name] += int(count)
    first = [row for row in rows if row.members is None and row.copy_of is None and row.state != "duplicate"]
    assert counted["accepted"].total() == len(first)
    ended = Counter((row.queue, row.state) for row in rows if row.state in INBOX.terminal - {"duplicate"})
    assert counted["ended"] == ended
    leased = Counter[tuple[str, str]]()
    for row in rows:
        leased[row.queue, row.tier] += row.attempts
    assert counted["wait"] == +leased


async def _check_known(place: Place, accepted: Sequence[Row]) -> None:
    """Each event is known, by the message it was accepted as; and no key stands for an event that never came."""
    known = await _known(place)
    firsts = [row for row in accepted if row.copy_of is None]
    assert {row.name for row in firsts} == set(known), "accepted and not known, or known and not accepted"
    failed = {row.id for row in accepted if row.state == "failed"}
    standing = Counter(row.name for row in firsts if row.id not in failed and row.linked_to not in failed)
    assert set(standing.values()) <= {1}, "an event was accepted twice, though the first time did not fail"
    assert max(Counter(row.copy_of for row in accepted if row.copy_of).values(), default=1) == 1, "upgraded twice"
    phantoms = "SELECT count(*) FROM inbox_keys WHERE event_key NOT IN (SELECT event_key FROM inbox_events)"
    assert await place.rows(phantoms) == [(0,)]


async def _known(place: Place) -> dict[str, UUID]:
    found = await place.rows("SELECT event_key, inbox_id FROM inbox_events")
    return {event_key.rpartition("\x1f")[2]: _uuid(id) for event_key, id in found}


def answers(children: Iterable[Child]) -> dict[str, set[UUID]]:
    """The ids that producers were told, by the names of their messages."""
    told: dict[str, set[UUID]] = {}
    for child in children:
        for line in child.announced("accepted"):
            name, id = line.details.split()
            told.setdefault(name, set()).add(UUID(id))
    return told


async def check_told(place: Place, told: Mapping[str, set[UUID]]) -> None:
    """Every acknowledged message is there under the id that was answered; another id only after that one failed."""
    known = await _known(place)
    states = {row.id: row.state for row in await all_rows(place)}
    for name, ids in told.items():
        assert name in known, f"{name} was accepted and is not known"
        for id in ids - {known[name]}:
            assert states.get(id) == "failed", f"{name} was given two ids, and the first is {states.get(id)}"
        assert known[name] in states


async def check_deliveries(place: Place, children: Iterable[Child]) -> None:
    """Nothing was delivered twice under one attempt, and nothing at all after its ack was answered."""
    latest: dict[UUID, int] = {}
    delivered: set[tuple[UUID, int]] = set()
    acked: dict[UUID, int] = {}
    for child in children:
        for line in child.announced("delivered"):
            id, attempts = _details(line.details)
            assert (id, attempts) not in delivered, f"{id} was delivered twice in attempt {attempts}"
            delivered.add((id, attempts))
            latest[id] = max(attempts, latest.get(id, 0))
        for line in child.announced("acked"):
            id, attempts = _details(line.details)
            assert id not in acked, f"{id} was acked twice"
            acked[id] = attempts
    rows = {row.id: row for row in await all_rows(place)}
    for id, attempts in acked.items():
        assert latest[id] == attempts, f"{id} was delivered after its ack"
        assert (rows[id].state, rows[id].attempts) == ("done", attempts), rows[id]


async def check_streaks(place: Place, policies: Iterable[QueuePolicy]) -> int:
    """The streaks are those of all picks in their order, but for those whose lease ran out. Returns the leases."""
    log = await place.rows("SELECT queue, tier, token, taken_back FROM chaos_picks ORDER BY queue, number")
    kept = dict(await place.rows("SELECT queue, streaks_json FROM queue_state"))
    for policy in policies:
        counted = [tier for queue, tier, _, taken_back in log if queue == policy.queue and not taken_back]
        streaks = {**dict.fromkeys(policy.tiers, 0), **_json(kept.get(policy.queue, "{}"))}
        assert _after(policy, counted) == streaks, policy.queue
    return len({token for _, _, token, _ in log})


def _after(policy: QueuePolicy, picks: Sequence[str]) -> dict[str, int]:
    """Each pick lengthens the streak of its tier, and begins those of the tiers above it anew."""
    after = dict.fromkeys(policy.tiers, 0)
    for tier in picks:
        after[tier] += 1
        for above in policy.tiers[: policy.tiers.index(tier)]:
            after[above] = 0
    return after


def _json(value: str) -> dict[str, int]:
    return json.loads(value)


def _details(text: str) -> tuple[UUID, int]:
    id, attempts = text.split()
    return UUID(id), int(attempts)


def _uuid(value: object) -> UUID:
    return UUID(str(value))


def _optional(value: object) -> UUID | None:
    return None if value is None else _uuid(value)


def _there(id: UUID | None) -> UUID:
    assert id is not None, "linked to nothing"
    return id
