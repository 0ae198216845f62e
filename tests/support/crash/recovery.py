"""After a chaos run: what dead processes held comes back, and everything left is delivered in the right order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from postroom.core.queue.queues import QueuePolicy
from postroom.intake.buffer import Buffer, Delivery
from postroom.store.engine.codecs import as_time, from_json
from postroom.store.engine.database import Database
from postroom.store.intake.inbox import LeaseRef
from support.crash.evidence import Place
from support.crash.inbox_evidence import all_rows
from support.crash.traffic import MOST_DELIVERIES, POLICIES, QUEUES

MOMENT = timedelta(microseconds=1)
LARGEST_LEASE = 25


@dataclass(frozen=True)
class Held:
    """A message that was in someone's hands when all were dead."""

    tier: str
    attempts: int
    until: datetime


async def held_by_the_dead(place: Place) -> dict[UUID, Held]:
    rows = await place.rows("SELECT id, tier, attempts, lease_until FROM inbox_queue WHERE state = 'leased'")
    return {UUID(str(id)): Held(tier, attempts, as_time(until)) for id, tier, attempts, until in rows}


async def check_comes_back(place: Place, database: Database, held: Mapping[UUID, Held]) -> datetime:
    """Nothing before its lease has run out, everything right after. Returns the moment it is now."""
    earliest, latest = (moment(each.until for each in held.values()) for moment in (min, max))
    await Buffer(database, QUEUES, lambda: earliest).sweep()
    assert (await held_by_the_dead(place)).keys() == held.keys(), "taken from someone whose lease had not run out"
    await Buffer(database, QUEUES, lambda: latest + MOMENT).sweep()
    for row in await all_rows(place):
        if row.id in held:
            assert row.attempts == held[row.id].attempts
            assert row.state == ("failed" if row.attempts >= MOST_DELIVERIES else "waiting"), row
    assert await held_by_the_dead(place) == {}
    return latest + MOMENT


async def drain_in_order(place: Place, database: Database, now: datetime, rng: Random) -> int:
    """One consumer takes all that is left, and every pick is the one that had to be made. Returns how many."""
    buffer = Buffer(database, QUEUES, lambda: now)
    picks = 0
    for policy in POLICIES:
        lines = await _lines(place, policy)
        streaks = await _streaks(place, policy)
        places = {UUID(str(id)): seq for id, seq in await place.rows("SELECT id, seq FROM inbox_queue")}
        while deliveries := await buffer.next(policy.queue, rng.randint(1, LARGEST_LEASE)):
            for each in deliveries:
                _check_pick(policy, lines, streaks, each, places)
            refs = [LeaseRef(each.message_id, each.lease_token) for each in deliveries]
            assert await buffer.ack(refs) == [None] * len(refs)
            picks += len(deliveries)
        assert not any(lines.values()), "left behind"
        assert await _streaks(place, policy) == streaks
    return picks


def _check_pick(
    policy: QueuePolicy,
    lines: dict[str, list[int]],
    streaks: dict[str, int],
    delivery: Delivery,
    places: Mapping[UUID, int],
) -> None:
    """The tier that is next by order and guard, and of it the first, or a summary that begins with the first."""
    waiting = [tier for tier in policy.tiers if lines[tier]]
    expected = waiting[0]
    for position, tier in enumerate(policy.tiers):
        below = [lower for lower in policy.tiers[position + 1 :] if lower in waiting]
        if streaks[tier] >= policy.guards[tier] and below:
            expected = below[0]
            break
    assert delivery.tier == expected, (delivery.tier, expected, streaks, waiting)
    stood_there = delivery.message_id in places  # a summary made just now did not: it took the place of its members
    gone = [places[id] for id in ([delivery.message_id] if stood_there else delivery.members)]
    assert gone[0] == lines[expected][0], "not the first of its tier"
    lines[expected] = [seq for seq in lines[expected] if seq not in set(gone)]
    streaks[expected] += 1
    for above in policy.tiers[: policy.tiers.index(expected)]:
        streaks[above] = 0


async def _lines(place: Place, policy: QueuePolicy) -> dict[str, list[int]]:
    rows: Sequence[tuple[str, int]] = [
        (tier, seq)
        for queue, tier, seq in await place.rows("SELECT queue, tier, seq FROM inbox_queue ORDER BY seq")
        if queue == policy.queue
    ]
    return {tier: [seq for its, seq in rows if its == tier] for tier in policy.tiers}


async def _streaks(place: Place, policy: QueuePolicy) -> dict[str, int]:
    kept = dict(await place.rows("SELECT queue, streaks_json FROM queue_state"))
    return {tier: from_json(kept.get(policy.queue, "{}")).get(tier, 0) for tier in policy.tiers}
