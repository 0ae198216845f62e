"""Acceptance in batches and by many at once gives the same answers as one after another."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, Conflict, PostroomError
from postroom.intake.intake import LARGEST_BATCH, Intake
from postroom.store.engine.database import Database
from postroom.store.intake.acceptance import Accepted
from support.clocks import ManualClock
from support.scale import scale
from support.store.inbox_setup import InboxSetup, check_books, event, look, mail, metadata, reopened

DATABASES = 4
MALLORY = {"identity": "mallory"}


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name}


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


@pytest.fixture
async def intakes(database: Database, clock: ManualClock) -> AsyncIterator[list[Intake]]:
    """Sixteen, as in as many processes: on database objects that know nothing of each other."""
    await InboxSetup(database, clock).open_account()
    opened = [reopened(database) for _ in range(DATABASES)]
    yield [Intake(opened[n % DATABASES], None, clock) for n in range(16)]
    for each in opened:
        await each.close()


def kinds(answers: Sequence[object]) -> list[str]:
    names: dict[type, str] = {Accepted: "accepted", Conflict: "conflict", BadInput: "bad"}
    return ["duplicate" if isinstance(each, Accepted) and each.duplicate else names[type(each)] for each in answers]


# Batches.


async def test_one_bad_member_is_named_by_its_place_and_the_good_ones_are_accepted(setup: InboxSetup) -> None:
    items: list[object] = [event(n) for n in range(7)]
    items[1] = event(1, event={"kind": "two words"})
    items[3] = "no envelope"
    items[5] = event(5, payload={"raw": {"half": "\ud800"}})
    answers = await setup.batch(*items)
    assert kinds(answers) == ["accepted", "bad", "accepted", "bad", "accepted", "bad", "accepted"]
    fields = [each.field for each in answers if isinstance(each, BadInput)]
    assert fields == ["event.kind", "envelope", "payload"]
    assert [row.id for row in await setup.look()] == [each.request_id for each in answers if isinstance(each, Accepted)]


async def test_a_batch_of_nothing_but_bad_members_tells_each_why(setup: InboxSetup) -> None:
    assert kinds(await setup.batch(None, {}, event(event={"kind": ""}))) == ["bad"] * 3
    assert await setup.look() == []


async def test_copies_in_one_batch_share_the_first_id(setup: InboxSetup) -> None:
    first, *others = await setup.batch(event(1, control=key("k")), event(1), event(1, control=key("k")))
    assert isinstance(first, Accepted)
    assert others == [Accepted(first.request_id, True, "event")] * 2


async def test_the_same_words_in_one_batch_are_one_message(setup: InboxSetup) -> None:
    said = {"raw": {}, "normalized_text": "push changes"}
    first, *others = await setup.batch(*(event(n, payload=said) for n in range(3)))
    assert isinstance(first, Accepted)
    assert others == [Accepted(first.request_id, True, "text")] * 2
    assert await setup.states() == ["waiting", "duplicate", "duplicate"]


@pytest.mark.parametrize(
    ("before", "batch", "expected"),
    [
        ([], [event(1, control=key("k")), event(2, control=key("k"))], ["accepted", "conflict"]),
        ([], [event(1), event(1, sender=MALLORY)], ["accepted", "conflict"]),
        ([event(1, control=key("k"))], [event(2, control=key("k")), event(3)], ["conflict", "accepted"]),
        ([event(1)], [event(1, sender=MALLORY), event(2)], ["conflict", "accepted"]),
        ([event(1)], [event(1, sender=MALLORY), event(1)], ["conflict", "duplicate"]),
        (
            [event(1, control=key("k"))],
            [event(2, control=key("k")), event(1, control=key("k"))],
            ["conflict", "duplicate"],
        ),
        (
            [event(1)],
            [event(1, sender=MALLORY, control=key("k")), event(2, control=key("k"))],
            ["conflict", "accepted"],
        ),
    ],
    ids=[
        "key twice",
        "event twice",
        "known key",
        "known event",
        "the rightful beside the wrong, by event",
        "the rightful beside the wrong, by key",
        "a key that the refused had taken",
    ],
)
async def test_a_conflict_in_a_batch_refuses_the_wrong_one_and_nobody_else(
    setup: InboxSetup, before: list[dict[str, Any]], batch: list[dict[str, Any]], expected: list[str]
) -> None:
    await setup.ingest(*before)
    answers = await setup.batch(*batch)
    assert kinds(answers) == expected
    accepted = expected.count("accepted")
    assert len(await setup.look()) == len(before) + accepted


async def test_a_conflict_in_a_batch_names_both(setup: InboxSetup) -> None:
    _, conflict = await setup.batch(event(1, control=key("k")), event(2, control=key("k")))
    assert "event-1 from builder" in str(conflict)
    assert "event-2 from builder" in str(conflict)


async def test_who_is_refused_within_a_batch_leaves_no_key_behind(setup: InboxSetup) -> None:
    assert kinds(await setup.batch(event(1), event(1, sender=MALLORY, control=key("k")))) == ["accepted", "conflict"]
    assert kinds(await setup.batch(event(2, control=key("k")))) == ["accepted"]


# Many at once.


async def test_of_many_who_deliver_the_same_message_exactly_one_inserts_it(
    database: Database, intakes: list[Intake]
) -> None:
    given = event(1, control=key("k"))
    answers = await asyncio.gather(*(intake.ingest(given) for intake in intakes * 4))
    assert Counter(each.duplicate for each in answers) == {False: 1, True: 4 * len(intakes) - 1}
    assert len({each.request_id for each in answers}) == 1
    assert len(await look(database)) == 1


async def test_of_many_who_say_the_same_words_exactly_one_is_heard(database: Database, intakes: list[Intake]) -> None:
    said = {"raw": {}, "normalized_text": "push changes"}
    answers = await asyncio.gather(*(intake.ingest(event(n, payload=said)) for n, intake in enumerate(intakes * 4)))
    assert Counter(each.duplicate for each in answers) == {False: 1, True: 4 * len(intakes) - 1}
    assert len({each.request_id for each in answers}) == 1
    rows = await look(database)
    assert Counter(row.state for row in rows) == {"waiting": 1, "duplicate": 4 * len(intakes) - 1}
    check_books(rows, accepted=4 * len(intakes))


async def test_of_many_events_that_claim_one_key_exactly_one_has_it(database: Database, intakes: list[Intake]) -> None:
    asked = (intake.ingest(event(n, control=key("k"))) for n, intake in enumerate(intakes))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert Counter(kinds(answers)) == {"accepted": 1, "conflict": len(intakes) - 1}
    assert len(await look(database)) == 1


async def test_of_many_senders_who_claim_one_event_exactly_one_has_it(
    database: Database, intakes: list[Intake]
) -> None:
    """The refused give their keys back, which are free for others then."""
    asked = (
        intake.ingest(event(1, sender={"identity": f"sender {n}"}, control=key(f"k{n}")))
        for n, intake in enumerate(intakes)
    )
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert Counter(kinds(answers)) == {"accepted": 1, "conflict": len(intakes) - 1}
    assert len(await look(database)) == 1
    winner = kinds(answers).index("accepted")
    again = [await intakes[0].ingest(event(n + 2, control=key(f"k{n}"))) for n in range(len(intakes)) if n != winner]
    assert not any(each.duplicate for each in again)


async def test_of_many_full_copies_exactly_one_is_the_upgrade(database: Database, intakes: list[Intake]) -> None:
    await intakes[0].ingest(metadata(mail()))
    asked = (intake.ingest(mail() if n % 4 else metadata(mail())) for n, intake in enumerate(intakes))
    answers = await asyncio.gather(*asked)
    assert Counter(each.known_by for each in answers) == {"upgrade": 1, "event": len(intakes) - 1}
    assert [row.copy_of for row in await look(database)] == [None, answers[0].request_id]


async def test_batches_that_overlap_in_opposite_order_are_all_answered(
    database: Database, intakes: list[Intake]
) -> None:
    """Each takes the rows of the others in its own order; nobody waits in a circle for good."""
    items = [metadata(mail(n, control=key(f"k{n}"))) for n in range(60)]
    full = [mail(n, control=key(f"k{n}")) for n in range(60)]
    seed = 3
    print(f"seed {seed}")
    random = Random(seed)
    await intakes[0].ingest_batch(items)
    asked = [(intake, random.sample(full, len(full))) for intake in intakes]
    answers = await asyncio.gather(*(intake.ingest_batch(batch) for intake, batch in asked))
    assert all(isinstance(each, Accepted) and each.duplicate for batch in answers for each in batch)
    assert len(await look(database)) == 120


async def test_every_message_that_many_writers_send_again_and_again_is_there_once(
    database: Database, intakes: list[Intake]
) -> None:
    count, seed = scale(1_000, 10_000), 7
    print(f"seed {seed}")
    random = Random(seed)
    sent = [n for n in range(count) for _ in range(5)]
    random.shuffle(sent)
    given = [_numbered(n) for n in range(count)]
    ids: list[set[UUID]] = [set() for _ in range(count)]
    fresh = Counter[int]()

    async def write(intake: Intake, mine: list[int], own: Random) -> None:
        while mine:
            size = own.choice((1, 1, 2, 20, LARGEST_BATCH))
            numbers, mine = mine[:size], mine[size:]
            answers: Sequence[Accepted | PostroomError]
            if size == 1:
                answers = [await intake.ingest(given[numbers[0]])]
            else:
                answers = await intake.ingest_batch([given[n] for n in numbers])
            for number, answer in zip(numbers, answers, strict=True):
                assert isinstance(answer, Accepted), answer
                ids[number].add(answer.request_id)
                fresh[number] += not answer.duplicate

    writers = len(intakes)
    await asyncio.gather(*(write(each, sent[n::writers], Random(seed + n)) for n, each in enumerate(intakes)))
    rows = await look(database)
    assert len(rows) == count
    assert fresh == dict.fromkeys(range(count), 1)
    assert [len(each) for each in ids] == [1] * count
    assert {row.id for row in rows} == set[UUID]().union(*ids)


def _numbered(number: int) -> dict[str, Any]:
    """Mail and events, some with keys."""
    control = key(f"k{number}") if number % 3 == 0 else {}
    return mail(number, control=control) if number % 2 else event(number, control=control)
