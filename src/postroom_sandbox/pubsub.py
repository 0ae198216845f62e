"""A stand-in for Google Cloud Pub/Sub: topics, pull and push subscriptions, acknowledgements.

Messages that are not acknowledged within their deadline are delivered again: delivery is at least once.
"""

import asyncio
import base64
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx2
import orjson

from postroom_sandbox.refusal import conflict, forbidden, invalid, missing
from postroom_sandbox.signing import ISSUER, Signer

Json = dict[str, Any]

TOPIC = re.compile(r"projects/[^/\s]+/topics/[^/\s]+")
SUBSCRIPTION = re.compile(r"projects/[^/\s]+/subscriptions/[^/\s]+")
ACK_DEADLINE = timedelta(seconds=10)
PULL_WAIT_S = 5.0
RETRY_S = 1.0
PUSHER = "gmail-push@postroom-sandbox.iam.gserviceaccount.com"


@dataclass
class _Waiting:
    id: str
    data: bytes
    published_at: datetime
    ack_id: str = ""
    handed_out_until: datetime | None = None
    attempts: int = 0

    def as_json(self) -> Json:
        moment = self.published_at.isoformat().replace("+00:00", "Z")
        data = base64.b64encode(self.data).decode()
        return {"data": data, "messageId": self.id, "publishTime": moment}


@dataclass
class Subscription:
    """A subscription to a topic. With `push_to` its messages are posted there, else they wait to be pulled.

    If it is `closed`, only its owner may pull it.
    """

    name: str
    topic: str
    push_to: str = ""
    audience: str = ""
    pusher: str = PUSHER
    ack_deadline: timedelta = ACK_DEADLINE
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    closed: bool = False
    filled: asyncio.Event = field(default_factory=asyncio.Event)
    awaited: asyncio.Event = field(default_factory=asyncio.Event)

    def hand_out(self, most: int, now: datetime) -> list[_Waiting]:
        free = [each for each in self.waiting if each.handed_out_until is None or each.handed_out_until <= now]
        for each in free[:most]:
            each.ack_id = secrets.token_urlsafe(24)
            each.handed_out_until = now + self.ack_deadline
            each.attempts += 1
        return free[:most]

    def acknowledge(self, ack_ids: list[str]) -> None:
        self.waiting = [each for each in self.waiting if not each.ack_id or each.ack_id not in ack_ids]

    def postpone(self, ack_ids: list[str], by: timedelta, now: datetime) -> None:
        for each in self.waiting:
            if each.ack_id and each.ack_id in ack_ids:
                each.handed_out_until = now + by
                if not by:
                    self.filled.set()

    def as_json(self) -> Json:
        push: Json = {}
        if self.push_to:
            token = {"serviceAccountEmail": self.pusher, "audience": self.audience or self.push_to}
            push = {"pushEndpoint": self.push_to, "oidcToken": token}
        deadline = int(self.ack_deadline.total_seconds())
        return {"name": self.name, "topic": self.topic, "pushConfig": push, "ackDeadlineSeconds": deadline}


class Pubsub:
    """All topics and subscriptions."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        signer: Signer,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.pushed: list[tuple[str, int]] = []
        self._clock = clock
        self._signer = signer
        self._sleep = sleep
        self._topics: set[str] = set()
        self._subscriptions: dict[str, Subscription] = {}
        self._published = 0
        self._to_push = asyncio.Event()

    def create_topic(self, name: str) -> None:
        if not TOPIC.fullmatch(name):
            raise invalid(f"Invalid topicName: {name}")
        self._topics.add(name)

    def subscribe(self, name: str, topic: str, push_to: str = "", audience: str = "", pusher: str = "") -> Subscription:
        if not SUBSCRIPTION.fullmatch(name):
            raise invalid(f"Invalid resource name given (name={name})")
        if name in self._subscriptions:
            raise conflict("Resource already exists in the project")
        self.create_topic(topic)
        subscription = Subscription(name, topic, push_to, audience, pusher or PUSHER)
        self._subscriptions[name] = subscription
        return subscription

    def subscription(self, name: str) -> Subscription:
        if name not in self._subscriptions:
            raise missing()
        return self._subscriptions[name]

    def unsubscribe(self, name: str) -> None:
        self.subscription(name)
        del self._subscriptions[name]

    def publish(self, topic: str, content: Mapping[str, object]) -> None:
        for subscription in self._subscriptions.values():
            if subscription.topic == topic:
                self._published += 1
                waiting = _Waiting(str(10**15 + self._published), orjson.dumps(dict(content)), self._clock())
                subscription.waiting.append(waiting)
                subscription.filled.set()
                if subscription.push_to:
                    self._to_push.set()

    async def pull(self, name: str, most: int, at_once: bool, wait_s: float = PULL_WAIT_S) -> list[Json]:
        """The waiting messages; if there are none, wait a few seconds for new ones."""
        subscription = self.subscription(name)
        if subscription.closed:
            raise forbidden("User not authorized to perform this action.")
        taken = subscription.hand_out(most, self._clock())
        if not taken and not at_once:
            subscription.filled.clear()
            subscription.awaited.set()
            try:
                async with asyncio.timeout(wait_s):
                    await subscription.filled.wait()
            except TimeoutError:
                return []
            taken = subscription.hand_out(most, self._clock())
        return [{"ackId": each.ack_id, "message": each.as_json(), "deliveryAttempt": each.attempts} for each in taken]

    def postpone(self, name: str, ack_ids: list[str], by: timedelta) -> None:
        """Set another deadline for delivered messages; zero delivers them again at once."""
        self.subscription(name).postpone(ack_ids, by, self._clock())

    async def push_forever(self) -> None:
        """Post published messages to push subscribers, in order, and retry each until it is accepted."""
        await self._to_push.wait()
        async with httpx2.AsyncClient(trust_env=False) as http:
            while True:
                self._to_push.clear()
                for subscription in [each for each in self._subscriptions.values() if each.push_to]:
                    await self._push(http, subscription)
                await self._to_push.wait()

    async def _push(self, http: httpx2.AsyncClient, subscription: Subscription) -> None:
        while subscription.waiting and subscription.name in self._subscriptions:
            first = subscription.waiting[0]
            message = first.as_json()
            old_names = {"message_id": message["messageId"], "publish_time": message["publishTime"]}
            body = {"message": {**message, **old_names}, "subscription": subscription.name}
            headers = {"Authorization": f"Bearer {self.push_token(subscription)}"}
            try:
                status = (await http.post(subscription.push_to, json=body, headers=headers)).status_code
            except httpx2.HTTPError:
                status = 0
            self.pushed.append((subscription.push_to, status))
            if status in (102, 200, 201, 202, 204):
                subscription.waiting.remove(first)
            else:
                await self._sleep(RETRY_S)

    def push_token(self, subscription: Subscription) -> str:
        """The token that Google adds to a push, so that the receiver can verify the sender."""
        now = int(self._clock().timestamp())
        return self._signer.sign(
            {
                "iss": ISSUER,
                "aud": subscription.audience or subscription.push_to,
                "azp": "113774264463038321964",
                "sub": "113774264463038321964",
                "email": subscription.pusher,
                "email_verified": True,
                "iat": now,
                "exp": now + 3600,
            }
        )
