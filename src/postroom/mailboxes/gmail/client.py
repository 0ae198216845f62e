"""A client of Gmail's REST API: one method per call, typed results, every failure one of `errors`.

With a `Quota` it waits for its turn, and retries rate-limited calls a few times. Without one it neither waits nor
retries. Any other failure is left to the caller, who knows whether a retry is safe. While Gmail refuses parts of
batches, batches get smaller: fewer calls run at once, and fewer are lost with a lost answer.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from copy import copy
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx2

from postroom.core.actions.permits import Permit
from postroom.core.errors import BadInput
from postroom.core.mail.categories import Category, queries_of
from postroom.core.mail.gate import Gate
from postroom.mailboxes.gmail import batch, calls
from postroom.mailboxes.gmail.calls import Call, Format, HistoryType
from postroom.mailboxes.gmail.errors import AnswerTooLarge, GmailError, NoLabels, RateLimited, ScopeMissing, Withheld
from postroom.mailboxes.gmail.gated_wire import GatedWire, LabelsNeeded
from postroom.mailboxes.gmail.paging import MOST_PAGES, pages
from postroom.mailboxes.gmail.quota import Quota, Ticket
from postroom.mailboxes.gmail.resources import (
    DraftRef,
    HistoryPage,
    Label,
    Message,
    MessagePage,
    MessageRef,
    Profile,
    SendAs,
    Watch,
)
from postroom.mailboxes.gmail.terms import Use
from postroom.mailboxes.gmail.tokens import KnowsConsent, PlainTokens, Token, TokenProvider
from postroom.mailboxes.gmail.wire import DEADLINE, Wire

GOOGLE = "https://gmail.googleapis.com"
API = "/gmail/v1/users/"
PARTS = 25
# How often a rate-limited call is tried.
TRIES = 6

T = TypeVar("T")
V = TypeVar("V")


class GmailClient:
    """Gmail's API for one mailbox."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        base_url: str,
        token: TokenProvider | Token,
        user: str = "me",
        *,
        quota: Quota | None = None,
        use: Use = "live",
        parts: int = PARTS,
        deadline: timedelta = DEADLINE,
        gate: Gate | None = None,
    ) -> None:
        if not 1 <= parts <= batch.MOST_PARTS:
            raise BadInput("parts", f"{parts} calls in a batch are not possible", f"use 1 to {batch.MOST_PARTS}")
        tokens = PlainTokens(token) if callable(token) else token
        self._tokens = tokens
        self._root = f"{API}{quote(user, safe='@')}"
        self._way_out = GatedWire(Wire(http, base_url, tokens, deadline), gate, self._root)
        self._permit: Permit | None = None
        self._quota = quota
        self._tries = 1 if quota is None else TRIES
        self._use: Use = use
        self._size = batch.Size(parts)

    def for_use(self, use: Use) -> Self:
        """The same client, with its calls admitted as `use`."""
        other = copy(self)
        other._use = use
        return other

    async def room(self, most: int, within_s: float, /) -> int:
        """How many messages, up to `most`, one request may ask for now. Wait for the quota at most so long; 0 if it
        allows none by then.
        """
        quota, count = self._quota, min(most, self._size.now)
        if quota is None:
            return most
        is_ready = await quota.is_ready(count * quota.price("messages.get"), self._use, within_s)
        return count if is_ready else 0

    async def category_queries(self, categories: Sequence[Category], user_address: str, /) -> Sequence[str]:
        """Searches for the words of the categories, in Gmail's syntax."""
        return queries_of(categories, user_address)

    @property
    def server_time(self) -> datetime | None:
        """Gmail's own time when it last answered; None before the first answer."""
        return self._way_out.server_time

    def under(self, permit: Permit) -> Self:
        """The same client with a permit for changes; without one it only reads."""
        other = copy(self)
        other._permit = permit
        return other

    async def get_profile(self) -> Profile:
        return await self.run(calls.get_profile())

    async def watch(self, topic: str, label_ids: Collection[str] = (), exclude: bool = False) -> Watch:
        """Have Gmail report changes to the Pub/Sub topic, for at most seven days."""
        return await self.run(calls.watch(topic, label_ids, exclude))

    def message_pages(
        self,
        q: str = "",
        label_ids: Collection[str] = (),
        max_results: int = 100,
        include_spam_trash: bool = False,
        page_token: str | None = None,
        most: int = MOST_PAGES,
    ) -> AsyncGenerator[MessagePage]:
        """Every page, newest first. Raises EndlessPages."""

        async def fetch(token: str | None) -> MessagePage:
            return await self.run(calls.list_messages(q, label_ids, token, max_results, include_spam_trash))

        return pages(fetch, page_token, most)

    async def get_message(
        self, message_id: str, format: Format = "full", metadata_headers: Collection[str] = ()
    ) -> Message:
        return await self.run(calls.get_message(message_id, format, metadata_headers))

    async def get_messages(
        self, message_ids: Sequence[str], format: Format = "full", metadata_headers: Collection[str] = ()
    ) -> list[Message | GmailError]:
        """Many messages, in batches, in the order of the ids: each a message or its own error."""
        return await self.batch([calls.get_message(each, format, metadata_headers) for each in message_ids])

    def message_batches(self, message_ids: Sequence[str]) -> AsyncGenerator[Mapping[int, Message | GmailError]]:
        """The same as they arrive, request by request, by their index in `message_ids`."""
        return self.batches([calls.get_message(each) for each in message_ids])

    async def delete_message(self, message_id: str) -> None:
        """Delete for good, bypassing the trash."""
        await self.run(calls.delete_message(message_id))

    async def create_draft(self, raw: bytes, thread_id: str | None = None) -> DraftRef:
        return await self.run(calls.create_draft(raw, thread_id))

    async def send_draft(self, draft_id: str) -> MessageRef:
        """Send a draft, which is then gone. After Unreachable, a draft that still exists was not sent."""
        return await self.run(calls.send_draft(draft_id))

    async def delete_draft(self, draft_id: str) -> None:
        await self.run(calls.delete_draft(draft_id))

    def history_pages(
        self,
        start_history_id: int,
        history_types: Collection[HistoryType] = (),
        label_id: str | None = None,
        max_results: int | None = None,
        most: int = MOST_PAGES,
    ) -> AsyncGenerator[HistoryPage]:
        """Every page of changes, oldest first. Raises HistoryExpired, EndlessPages."""

        async def fetch(token: str | None) -> HistoryPage:
            call = calls.list_history(start_history_id, token, history_types, label_id, max_results)
            return await self.run(call)

        return pages(fetch, most=most)

    async def list_labels(self) -> tuple[Label, ...]:
        """Every label of the mailbox. Raises NoLabels for an empty answer, which is never valid."""
        if not (found := await self.run(calls.list_labels())):
            raise NoLabels
        return found

    async def create_label(
        self, name: str, label_list_visibility: str = "labelShow", message_list_visibility: str = "show"
    ) -> Label:
        return await self.run(calls.create_label(name, label_list_visibility, message_list_visibility))

    async def list_send_as(self) -> tuple[SendAs, ...]:
        """The addresses that the user may send from, including the mailbox's own."""
        return await self.run(calls.list_send_as())

    async def run(self, call: Call[T]) -> T:
        """The result of one call; its error is raised."""
        call = call.under(call.permit or self._permit)
        for left in reversed(range(self._tries)):
            verdict = await self._attempt(call)
            if not isinstance(verdict, GmailError):
                return verdict
            if not left or not isinstance(verdict, RateLimited):
                raise verdict
        raise AssertionError("there is always a last try")

    async def _attempt(self, call: Call[T]) -> T | GmailError:
        while True:
            reads_labels = self._way_out.reads_labels
            async with self._admit(call.method.name, [call]) as ticket:
                with suppress(LabelsNeeded):
                    verdict = self._with_consent(await self._send(call, reads_labels))
                    if isinstance(verdict, RateLimited):
                        self._slow_down(ticket, verdict)
                    return verdict

    async def _send(self, call: Call[T], reads_labels: bool) -> T | GmailError:
        """Send the call; return the outcome. Raises the gate's error if it is not allowed out."""
        try:
            sent = await self._way_out.send(
                [call], lambda _calls: call.request(self._root), may_read_labels=reads_labels
            )
        except RateLimited as error:
            # The answer is to one of the reads before.
            return error
        for error in sent.refused.values():
            raise error
        if sent.answer is None:
            raise AssertionError("what is not refused is sent")
        return call.verdict(sent.answer)

    async def batch(self, wanted: Sequence[Call[T]]) -> list[T | GmailError]:
        """The outcome of each call, in order: its result or its error. An error of the whole request is raised."""
        outcomes: dict[int, T | GmailError] = {}
        async for settled in self.batches(wanted):
            outcomes.update(settled)
        return [outcomes[place] for place in range(len(wanted))]

    async def batches(
        self, wanted: Sequence[Call[T]], is_wanted: Callable[[int], bool] = lambda _place: True
    ) -> AsyncGenerator[Mapping[int, T | GmailError]]:
        """The outcomes of the calls, by their index in `wanted`, request by request.

        Only rate-limited calls are retried, in the next request, a few times; after a few requests in a row without any
        success, all remaining calls get that error. An error of a whole request is raised; outcomes yielded before it
        are valid. `is_wanted` is called before each request: calls that nobody waits for any more are not sent, and
        have no outcome.
        """
        line = deque((place, self._tries) for place in range(len(wanted)))
        in_vain = 0
        while line:
            group = self._affordable([wanted[place] for place, _ in islice(line, self._size.now)])
            asked = dict(line.popleft() for _ in group)
            outcomes = await self._batch(list(zip(asked, group, strict=True)), is_wanted)
            limited = [place for place, each in outcomes.items() if isinstance(each, RateLimited)]
            in_vain = in_vain + 1 if outcomes and len(limited) == len(outcomes) else 0
            if in_vain >= TRIES:
                outcomes.update((place, outcomes[limited[0]]) for place, _ in line)
                line.clear()
            else:
                for place in reversed(limited):
                    if asked[place] > 1:
                        line.appendleft((place, asked[place] - 1))
                        del outcomes[place]
            if outcomes:
                yield outcomes

    async def _batch(
        self, group: Sequence[tuple[int, Call[T]]], is_wanted: Callable[[int], bool]
    ) -> dict[int, T | GmailError]:
        """One request, or several if the answer to one would be too large; outcomes by index."""
        reads = self._way_out.reads_labels
        try:
            async with self._admit(batch.NAME, [call for _, call in group]) as ticket:
                sent = [(place, call) for place, call in group if is_wanted(place)]
                found = await self._exchange([call for _, call in sent], ticket, reads) if sent else []
                return {place: outcome for (place, _), outcome in zip(sent, found, strict=True)}
        except LabelsNeeded:
            return await self._batch(group, is_wanted)
        except AnswerTooLarge as error:
            if len(group) == 1:
                return {group[0][0]: error}
            middle = len(group) // 2
            return await self._batch(group[:middle], is_wanted) | await self._batch(group[middle:], is_wanted)

    async def _exchange(self, group: Sequence[Call[T]], ticket: Ticket | None, reads: bool) -> list[T | GmailError]:
        found = await self._batch_sent([call.under(call.permit or self._permit) for call in group], reads)
        limits = [each for each in found if isinstance(each, RateLimited)]
        self._size.answered(len(group), len(limits))
        if ticket is not None:
            ticket.got_through = len(limits) < len(group)
        if limits:
            self._slow_down(ticket, max(limits, key=lambda each: each.retry_after or timedelta(0)))
        return found

    async def _batch_sent(self, group: Sequence[Call[T]], reads_labels: bool) -> list[T | GmailError]:
        """The outcome of each call; a rate limit of the whole request applies to each, any other error of it is
        raised.
        """
        try:
            sent = await self._way_out.send(
                group,
                lambda kept: batch.batch_request(kept, self._root),
                batch.refuses_token,
                may_read_labels=reads_labels,
            )
            kept = [group[place] for place in sent.places]
            outcomes = [] if sent.answer is None else batch.outcomes(kept, sent.answer)
        except RateLimited as error:
            return [error] * len(group)
        except GmailError as error:
            raise self._with_consent(error) from None
        found: dict[int, T | GmailError] = {
            place: Withheld(group[place].method.name, why) for place, why in sent.refused.items()
        }
        found.update((place, self._with_consent(outcome)) for place, outcome in zip(sent.places, outcomes, strict=True))
        return [found[place] for place in range(len(group))]

    def _admit(self, name: str, group: Sequence[Call[Any]]) -> AbstractAsyncContextManager[Ticket | None]:
        if self._quota is None:
            return nullcontext()
        return self._quota.admitted(name, self._price(group), self._use)

    def _affordable(self, group: Sequence[Call[T]]) -> Sequence[Call[T]]:
        """As many of the first calls as a minute's units allow; a single call always fits."""
        if self._quota is None:
            return group
        most = self._quota.terms.allowance(self._use)
        while len(group) > 1 and self._price(group) > most:
            group = group[: len(group) // 2]
        return group

    def _price(self, group: Sequence[Call[Any]]) -> int:
        quota = self._quota
        if quota is None:
            return 0
        return sum(quota.price(call.method.name) for call in group) + self._way_out.extra_price(group, quota.price)

    def _with_consent(self, verdict: V) -> V | ScopeMissing:
        """Add the account and its granted scopes to a ScopeMissing error, if the token source knows them."""
        if not isinstance(verdict, ScopeMissing) or not isinstance(self._tokens, KnowsConsent):
            return verdict
        return verdict.with_consent(self._tokens.consented())

    def _slow_down(self, ticket: Ticket | None, error: RateLimited) -> None:
        if self._quota is not None and ticket is not None:
            self._quota.limited(ticket, error)
