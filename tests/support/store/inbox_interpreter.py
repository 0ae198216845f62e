"""Apply moves to the inbox of a database and to the model; answers and resulting states must agree."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from postroom.core.errors import Conflict
from postroom.core.queue.envelope import parse_envelope
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.history import streaks
from postroom.store.intake.inbox import LeaseRef, give_back
from support.backfills import NAMED
from support.store.inbox_model import Answer, Message, Model
from support.store.inbox_setup import InboxSetup, check_books, event, mail, metadata

T = TypeVar("T")

# How often each move is made, about. The first is the simplest.
WEIGHTS = {
    "pass_time": 4,
    "ingest": 8,
    "batch": 5,
    "next": 10,
    "ack": 4,
    "nack": 5,
    "hang_up": 3,
    "meddle": 2,
    "sweep": 2,
    "replay": 1,
    "restart": 2,
}
MOVES = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
SECONDS = (1, 10, 29.999, 30, 60, 60.001, 61, 299, 301, 500)
KINDS = (None, "test.x", "test.y", "deploy.failed", "callback_query", "note")
TIERS = ("default", "default", "interactive", "high_priority")
QUEUES = ("gateway", "gateway", "email")


def _choose(options: Sequence[T], number: int) -> T:
    return options[number % len(options)]


class InboxInterpreter:
    """One program under way."""

    def __init__(self, setup: InboxSetup) -> None:
        self.setup = setup
        self.model = Model(setup.queues)
        self.trace: list[str] = []
        self._held: list[tuple[Message, UUID]] = []

    async def do(self, move: str, a: int, b: int) -> None:
        """Makes the move, unless there is nothing to make it with."""
        self.trace.append(f"{move} {a} {b}")
        await getattr(self, f"_{move}")(a, b)

    async def check(self) -> None:
        """Everything is there, in the state in which it should be."""
        rows = await self.setup.look()
        check_books(rows, accepted=sum(each.members is None for each in self.model.messages))
        for row, message in zip(rows, self.model.messages, strict=True):
            assert row.id == (message.id or row.id)
            message.id = row.id
        assert [
            (row.tier, row.state, row.attempts, row.linked_to, row.members, row.copy_of) for row in rows
        ] == [
            (each.tier, each.state, each.attempts, _id(each.linked_to), each.members, _id(each.copy_of))
            for each in self.model.messages
        ]  # fmt: skip
        found = await self.setup.database.run(streaks())
        for queue in self.setup.queues.names:
            expected = self.model.streaks(self.setup.queues[queue])
            assert _counted(found.get(queue, {})) == _counted(expected), queue

    # what producers do

    def _envelope(self, a: int, b: int) -> dict[str, Any]:
        """Few enough events that many come again, in every way that is no lie."""
        number = a % 23
        control: dict[str, Any] = {"idempotency_key": f"k{number}-{b % 2}"} if b % 3 == 0 else {}
        if number % 3 == 0:
            if b % 11 == 0:
                control |= NAMED
            return mail(number, _choose(TIERS, b), control=control)
        name = {"external_event_id": f"event-{number}", "kind": _choose(KINDS, number)}
        said = "yes" if number % 7 == 0 else f"event {number} {b % 5}"
        raw = {"service": "web" if number % 2 else "api"}
        return event(number, event=name, payload={"raw": raw, "normalized_text": said}, control=control)

    async def _ingest(self, a: int, b: int) -> None:
        """Now and then only the metadata, under a key of another, or from another sender."""
        given = self._envelope(a, b)
        if b % 5 == 0:
            given = metadata(given)
        elif b % 13 == 0:
            given["sender"] = {"identity": "mallory"}
        elif b % 17 == 0:
            given["control"] = {"idempotency_key": f"k{(a + 1) % 23}-0"}
        expected = self.model.accept(parse_envelope(given), self.setup.clock())
        try:
            answer: Accepted | Conflict = await self.setup.intake.ingest(given)
        except Conflict as conflict:
            answer = conflict
        await self._compare([expected], [answer])

    async def _batch(self, a: int, b: int) -> None:
        given = [self._envelope(a + 5 * n, b + n) for n in range(2 + a % 6)]
        expected = [self.model.accept(parse_envelope(each), self.setup.clock()) for each in given]
        await self._compare(expected, await self.setup.batch(*given))

    async def _compare(self, expected: Sequence[Answer], answers: Sequence[object]) -> None:
        for wanted, answer in zip(expected, answers, strict=True):
            if wanted.known_by == "conflict":
                assert isinstance(answer, Conflict), answer
                continue
            assert isinstance(answer, Accepted), answer
            assert answer.known_by == wanted.known_by
            assert wanted.message is not None
            wanted.message.id = wanted.message.id or answer.request_id
            assert answer == (wanted.message.id, wanted.known_by is not None, wanted.known_by)
        await self.check()

    # what consumers do

    async def _next(self, a: int, b: int) -> None:
        await self._lease(_choose(QUEUES, a), _choose((1, 1, 2, 5, 100), b))

    async def _lease(self, queue: str, most: int) -> list[tuple[Message, UUID]]:
        await self._sweep(0, 0)
        deliveries = await self.setup.next(most, queue)
        token = deliveries[0].lease_token if deliveries else None
        taken = self.model.lease(self.setup.queues[queue], most, token, self.setup.clock())
        held: list[tuple[Message, UUID]] = []
        for delivery, (message, picked) in zip(deliveries, taken, strict=True):
            message.id = message.id or delivery.message_id
            assert (delivery.message_id, delivery.tier, delivery.lease_token) == (message.id, picked.counted, token)
            assert (delivery.attempts, delivery.lease_until) == (message.attempts, message.until)
            assert delivery.promoted_from == (picked.tier if picked.promoted else None)
            assert delivery.member_count == (message.members or 0)
            members = [each.id for each in self.model.messages if each.linked_to is message and message.members]
            assert list(delivery.members) == members
            held.append((message, delivery.lease_token))
        self._held += held
        return held

    async def _hang_up(self, a: int, b: int) -> None:
        """Before the answer came; others may hold messages of the same queue."""
        held = await self._lease(_choose(QUEUES, a), _choose((1, 2, 5), b))
        if held:
            refs = [LeaseRef(_known(each), token) for each, token in held]
            await self.setup.database.run(give_back(refs, self.setup.clock()))
            self.model.hang_up([each for each, _ in held])
            await self.check()

    def _some(self, a: int, b: int) -> list[tuple[Message, UUID]]:
        """Some of what was ever handed out, among it what is held no more; each once."""
        start = a % max(1, len(self._held))
        return list({each.place: (each, token) for each, token in self._held[start : start + 1 + b % 6]}.values())

    async def _ack(self, a: int, b: int) -> None:
        await self._acked(self._some(a, b))

    async def _acked(self, asked: list[tuple[Message, UUID]]) -> None:
        if asked:
            lost = await self.setup.buffer.ack([LeaseRef(_known(each), token) for each, token in asked])
            for each in self._still_held(asked, lost):
                each.end("done")

    async def _nack(self, a: int, b: int) -> None:
        if asked := self._some(a, b):
            lost = await self.setup.buffer.nack([LeaseRef(_known(each), token) for each, token in asked], "no")
            self.model.give_back(self._still_held(asked, lost))

    def _still_held(self, asked: Sequence[tuple[Message, UUID]], lost: Sequence[object]) -> list[Message]:
        held = [each for each, token in asked if self.model.is_held(each, token, self.setup.clock())]
        assert [each for (each, _), outcome in zip(asked, lost, strict=True) if outcome is None] == held
        return held

    async def _meddle(self, a: int, b: int) -> None:
        """With the lease of another."""
        if len(self._held) > 1:
            (message, own), (_, other) = _choose(self._held, a), _choose(self._held, b)
            if own != other and message.token != other:
                assert (await self.setup.buffer.ack([LeaseRef(_known(message), other)]))[0] is not None

    # what happens by itself, and to all

    async def _pass_time(self, a: int, b: int) -> None:
        self.setup.clock.forward(_choose(SECONDS, a))

    async def _sweep(self, a: int, b: int) -> None:
        await self.setup.buffer.sweep()
        now = self.setup.clock()
        self.model.return_expired(now)
        for name in self.setup.queues.names:
            self.model.sweep(self.setup.queues[name], now)

    async def _replay(self, a: int, b: int) -> None:
        """One of the past, by its id; what was dropped as a duplicate too."""
        ended = ("done", "failed", "coalesced", "auto_acked", "duplicate")
        past = [each for each in self.model.messages if each.members is None and each.state in ended]
        if past:
            chosen = _choose(past, a)
            self.setup.clock.forward(1)
            (copy,) = await self.setup.replay(chosen.policy.queue, since=chosen.accepted_at, ids=[_known(chosen)])
            self.model.replay([chosen], self.setup.clock())
            self.model.messages[-1].id = copy
            await self.check()

    async def _restart(self, a: int, b: int) -> None:
        await self.setup.restart()
        await self.check()

    async def drain(self) -> None:
        """Everything that was accepted comes to one end."""
        self.trace.append("drain")
        self.setup.clock.forward(1000)
        for queue in self.setup.queues.names:
            while taken := await self._lease(queue, 100):
                await self._acked(taken)
        await self.check()
        assert not any(each.state in ("waiting", "leased") for each in self.model.messages)


def _counted(streaks: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in streaks.items() if count}


def _id(message: Message | None) -> UUID | None:
    return None if message is None else message.id


def _known(message: Message) -> UUID:
    assert message.id is not None
    return message.id
