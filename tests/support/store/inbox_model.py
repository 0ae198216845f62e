"""A model of the inbox in memory: what is accepted, delivered and ended, one step after another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import Envelope
from postroom.core.queue.picker import Head, Pick, after_pick, pick
from postroom.core.queue.queues import QueuePolicy, Queues


@dataclass
class Message:
    """One message. The id of a copy or a duplicate is not told to whoever hands it in, so it is learned later."""

    place: int
    policy: QueuePolicy
    tier: str
    accepted_at: datetime
    id: UUID | None = None
    state: str = "waiting"
    attempts: int = 0
    token: UUID | None = None
    until: datetime | None = None
    linked_to: "Message | None" = None
    members: int | None = None
    copy_of: "Message | None" = None
    kind: str | None = None

    @property
    def head(self) -> Head:
        return Head(self.place, self.accepted_at, self.attempts == 0)

    def end(self, state: str, linked_to: "Message | None" = None) -> None:
        self.state, self.linked_to, self.token, self.until = state, linked_to, None, None


@dataclass
class Known:
    """What is known of an event."""

    first: Message
    sender: str
    is_full: bool
    was_upgraded: bool = False

    @property
    def has_failed(self) -> bool:
        return self.first.state == "failed" and not self.was_upgraded


@dataclass
class Answer:
    """What an ingest is answered: `known_by` is None for the new, "conflict" for the refused."""

    message: Message | None
    known_by: str | None


@dataclass
class Model:
    queues: Queues
    messages: list[Message] = field(default_factory=list[Message])
    picks: list[tuple[Message, Pick]] = field(default_factory=list[tuple[Message, Pick]])
    _keys: dict[str, str] = field(default_factory=dict[str, str])
    _events: dict[str, Known] = field(default_factory=dict[str, Known])
    _texts: dict[tuple[str, str], tuple[Message, datetime]] = field(
        default_factory=dict[tuple[str, str], tuple[Message, datetime]]
    )

    def streaks(self, policy: QueuePolicy) -> dict[str, int]:
        """From all picks of the queue that were not taken back, one after another."""
        streaks: dict[str, int] = {}
        for message, picked in self.picks:
            if message.policy.queue == policy.queue:
                streaks = after_pick(policy, streaks, picked)
        return streaks

    def take_back(self, message: Message) -> None:
        """The last pick of the message, which nobody got."""
        last = max(place for place, (each, _) in enumerate(self.picks) if each is message)
        del self.picks[last]

    def add(self, policy: QueuePolicy, tier: str, now: datetime) -> Message:
        message = Message(len(self.messages), policy, tier, now)
        self.messages.append(message)
        return message

    # what producers do

    def accept(self, envelope: Envelope, now: datetime) -> Answer:
        key, event_key = envelope.control.idempotency_key, envelope.event_key
        known = self._events.get(event_key)
        if key is not None and self._keys.get(key, event_key) != event_key:
            return Answer(None, "conflict")
        if known is not None and known.sender != envelope.sender.identity:
            return Answer(None, "conflict")
        by_key = key is not None and key in self._keys
        if key is not None:
            self._keys[key] = event_key
        is_full = envelope.control.ingestion_tier == "full"
        if known is None or known.has_failed:
            return self._accept_new(envelope, is_full, now)
        if is_full and not known.is_full:
            known.is_full = known.was_upgraded = True
            copy = self._new(envelope, now)
            copy.copy_of = known.first
            return Answer(known.first, "upgrade")
        return Answer(known.first, "key" if by_key else "event")

    def _new(self, envelope: Envelope, now: datetime) -> Message:
        policy = self.queues.of(envelope)
        message = self.add(policy, policy.tier_of(envelope), now)
        message.kind = envelope.event.kind
        return message

    def _accept_new(self, envelope: Envelope, is_full: bool, now: datetime) -> Answer:
        message = self._new(envelope, now)
        self._events[envelope.event_key] = known = Known(message, envelope.sender.identity, is_full)
        text, within = content_hash(envelope), message.policy.same_text_within
        if text is not None and within is not None:
            said, until = self._texts.get((message.policy.queue, text), (message, now))
            if until > now and said.state != "failed":
                message.end("duplicate", said)
                known.first = said
                return Answer(said, "text")
            self._texts[message.policy.queue, text] = message, now + within
        return Answer(message, None)

    def replay(self, messages: Iterable[Message], now: datetime) -> None:
        for each in list(messages):
            copy = self.add(each.policy, each.tier, now)
            copy.copy_of, copy.kind = each, each.kind

    # what consumers do

    def waiting(self, policy: QueuePolicy, tier: str) -> list[Message]:
        return [
            each
            for each in self.messages
            if each.state == "waiting" and each.tier == tier and each.policy.queue == policy.queue
        ]

    def lease(self, policy: QueuePolicy, most: int, token: UUID | None, now: datetime) -> list[tuple[Message, Pick]]:
        """Single picks, one after another; one that is coalesced is the last."""
        self.sweep(policy, now)
        taken: list[tuple[Message, Pick]] = []
        while len(taken) < most:
            lines = {tier: line for tier in policy.tiers if (line := self.waiting(policy, tier))}
            streaks = self.streaks(policy)
            picked = pick(policy, {tier: line[0].head for tier, line in lines.items()}, streaks, now)
            if picked is None:
                break
            head = lines[picked.tier][0]
            window = policy.coalesce_within.get(picked.tier)
            gathers = window is not None and head.attempts == 0 and now - head.accepted_at <= window
            message = self._gathered(policy, picked.tier, now) if gathers else head
            message.state, message.token, message.until = "leased", token, now + policy.lease
            message.attempts += 1
            self.picks.append((message, picked))
            taken.append((message, picked))
            if gathers:
                break
        return taken

    def _gathered(self, policy: QueuePolicy, tier: str, now: datetime) -> Message:
        young = [
            each
            for each in self.waiting(policy, tier)
            if each.attempts == 0 and now - each.accepted_at <= policy.coalesce_within[tier]
        ]
        if len(young) == 1:
            return young[0]
        summary = self.add(policy, tier, now)
        summary.members, summary.kind = len(young), "summary"
        for each in young:
            each.end("coalesced", summary)
        return summary

    def is_held(self, message: Message, token: UUID | None, now: datetime) -> bool:
        return message.state == "leased" and message.token == token and (message.until or now) >= now

    def give_back(self, messages: Sequence[Message]) -> None:
        for each in messages:
            worn_out = each.attempts >= each.policy.most_deliveries
            each.end("failed" if worn_out else "waiting")

    def hang_up(self, messages: Sequence[Message]) -> None:
        """Leased for someone who never got it: it waits as if it had not been touched, but a summary stays one."""
        for each in messages:
            self.take_back(each)
            each.end("waiting")
            each.attempts -= 0 if each.members is not None else 1

    # what happens by itself

    def return_expired(self, now: datetime) -> None:
        """What consumers held for too long; only what ends as failed was somebody's turn."""
        late = [each for each in self.messages if each.state == "leased" and (each.until or now) < now]
        for each in late:
            if each.attempts < each.policy.most_deliveries:
                self.take_back(each)
        self.give_back(late)

    def sweep(self, policy: QueuePolicy, now: datetime) -> None:
        for tier, patience in policy.auto_ack_after.items():
            for each in self.waiting(policy, tier):
                if now - each.accepted_at <= patience:
                    break
                if each.attempts == 0:
                    each.end("auto_acked")
