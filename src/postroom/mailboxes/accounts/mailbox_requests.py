"""Requests to connectors: work that needs a mailbox at once. Connectors lease them by long polling and answer.

Everything is in the store; this waits for signals, on both sides.
"""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.mail.mailbox_requests import RequestKind
from postroom.core.mail.message import storable
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.long_poll import LongPoll, check_wait
from postroom.store.intake import connector_requests as store
from postroom.store.intake import connectors
from postroom.store.intake.connector_requests import LeasedRequest, NewRequest, Reply, RequestView
from postroom.system.wall_clock import Clock

LEASE = timedelta(minutes=2)
EXPIRES = timedelta(minutes=5)
MOST_AT_ONCE = 10
POLL_S = 30.0
LONGEST_ERROR = 500


class ConnectorRequests:
    """The requests to all connectors, for requesters and for connectors."""

    def __init__(self, database: Database, clock: Clock, *, poll_s: float = POLL_S) -> None:
        self._database = database
        self._clock = clock
        self._long_poll = LongPoll(database, poll_s, not_given_back="connector.requests_not_given_back")

    async def next(
        self,
        endpoint_identity: str,
        most: int = 1,
        wait: timedelta = timedelta(0),
        left: asyncio.Event | None = None,
    ) -> list[LeasedRequest]:
        """Lease up to `most` requests to one connector; if there are none, wait for up to `wait`.

        `left` is set when nobody waits for the answer any more: then requests that were just leased are given back.
        """
        if not 1 <= most <= MOST_AT_ONCE:
            raise BadInput("max", f"is {most}", f"ask for 1 to {MOST_AT_ONCE} requests")
        check_wait(wait)

        async def give_back(leased: list[LeasedRequest]) -> None:
            if leased:
                await self._database.run(store.give_back_requests(endpoint_identity, leased[0].lease_token))

        signal, take = store.signal_of(endpoint_identity), lambda: self._lease(endpoint_identity, most)
        return await self._long_poll.lease(store.ASKED, signal, take, give_back, wait, left)

    async def reply(self, request_id: UUID, endpoint_identity: str, lease_token: UUID, reply: Reply) -> None:
        """End a request with its result, or with the reason why there is none. Raises LeaseLost if it is no longer
        held.
        """
        if (reply.result is None) == (reply.error is None):
            raise BadInput("result", "and error exclude each other, and one is needed", "give one of the two")
        if reply.error is not None:
            reply = Reply(error=storable(" ".join(reply.error.split())[:LONGEST_ERROR]))
        now = self._clock()
        await self._database.run(store.end_request(request_id, endpoint_identity, lease_token, reply, now))

    async def ask(
        self,
        endpoint_identity: str,
        kind: RequestKind,
        arguments: dict[str, object],
        wait: timedelta = timedelta(0),
        left: asyncio.Event | None = None,
    ) -> RequestView:
        """Ask the connector of an endpoint, and wait for up to `wait` until the request has ended. Return its state.

        If nobody waits any more the request stays: asking for the same again returns the same request, as long as no
        connector has leased it. One in progress may have looked already, so asking then is a new request.
        """
        check_wait(wait)
        await self._check_known(endpoint_identity)
        now = self._clock()
        request = NewRequest(new_id(), endpoint_identity, kind, arguments, now + EXPIRES)
        id = await self._database.run(store.ask_connector(request, now))

        async def look() -> RequestView | None:
            view = await self._database.run(store.load_request(id))
            return view if view.ended else None

        ended = await self._long_poll.find(store.ENDED, str(id), look, wait, left)
        return ended or await self._database.run(store.load_request(id))

    async def close(self) -> None:
        """Wait until everything has been given back."""
        await self._long_poll.close()

    async def _lease(self, endpoint_identity: str, most: int) -> list[LeasedRequest]:
        """Lease requests. A connector with nothing to do only reads."""
        now = self._clock()
        if not await self._database.run(store.any_request_due(endpoint_identity, now)):
            return []
        return await self._database.run(store.lease_requests(endpoint_identity, most, new_id(), LEASE, now))

    async def _check_known(self, endpoint_identity: str) -> None:
        """Check that a connector exists: a request to one that never reported would wait in vain."""
        if await self._database.run(connectors.connectors_of(endpoint_identity)):
            return
        if await self._database.run(accounts.account_at(endpoint_identity)) is None:
            raise NotFound(f"no connector of {endpoint_identity!r} ever reported; connector.list lists those that did")


def expires_in_s(request: LeasedRequest, now: datetime) -> float:
    """How long an answer is still useful, for a connector whose own clock may be wrong."""
    return max(0.0, (request.expires_at - now).total_seconds())
