"""The way out for a group of calls in one request: what only reads goes straight, what changes something passes the
gate, each part by itself, and parts that may not leave are left out.

Labels can be protected, and Gmail changes a message whatever its labels are by then. So where any label is protected,
the labels of each message are read right before the change: `messages.get` costs units, which are part of its price.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import PostroomError
from postroom.gmail import batch, calls
from postroom.gmail.calls import Call
from postroom.gmail.errors import GmailError, NoPermit, NotThere, Unreachable
from postroom.gmail.gate import Clearance, ClearanceExpired, Gate
from postroom.gmail.methods import GET_MESSAGE, LIST_LABELS
from postroom.gmail.wire import Answer, Request, Wire, is_401

# How often the gate is asked for one request whose clearance runs out, or which has labels to be read first.
MOST_ASKS = 10

Labels = Mapping[str, frozenset[str] | None]


class LabelsNeeded(Exception):
    """Labels are protected since the units were taken: the request has to be admitted again, at its new price."""


class Sent(NamedTuple):
    """The calls that were sent, by their places in the group, and their answer, if any was; and why others were not."""

    places: tuple[int, ...]
    answer: Answer | None
    refused: Mapping[int, PostroomError]


class GatedWire:
    """The way to Gmail for one mailbox, through the gate."""

    def __init__(self, wire: Wire, gate: Gate | None, root: str) -> None:
        self._wire = wire
        self._gate = gate
        self._root = root

    @property
    def server_time(self) -> datetime | None:
        """The time at Gmail when it last answered."""
        return self._wire.server_time

    @property
    def reads_labels(self) -> bool:
        """Whether labels are read before changes, as far as is known."""
        return self._gate is not None and self._gate.protects_labels

    def extra_price(self, group: Sequence[Call[Any]], prices: Callable[[str], int]) -> int:
        """What reading labels before the changes of this group costs, if any is protected."""
        changes = sum(call.method.changes for call in group)
        if not changes or not self.reads_labels:
            return 0
        return changes * prices(GET_MESSAGE.name) + prices(LIST_LABELS.name)

    async def send(
        self,
        group: Sequence[Call[Any]],
        make: Callable[[Sequence[Call[Any]]], Request],
        refuses_token: Callable[[Answer], bool] = is_401,
        *,
        may_read_labels: bool,
    ) -> Sent:
        """Sends those of the group that may leave. Raises LabelsNeeded, and the errors of the wire and the gate."""
        changes = [place for place, call in enumerate(group) if call.method.changes]
        if not changes:
            answer = await self._wire.send(make(group), refuses_token)
            return Sent(tuple(range(len(group))), answer, {})
        asking = _Asking(self, self._checked_gate(group[changes[0]]), [_permit(group[each]) for each in changes])
        for _ in range(MOST_ASKS):
            clearance = await asking.clearance(may_read_labels)
            if clearance is None:
                continue
            refused = {changes[place]: error for place, error in clearance.refused.items()}
            places = tuple(place for place in range(len(group)) if place not in refused)
            if not places:
                return Sent((), None, refused)
            try:
                with clearance.on_the_wire():
                    request = make([group[place] for place in places])
                    return Sent(places, await self._wire.send(request, refuses_token, clearance.check), refused)
            except ClearanceExpired:
                asking.forget()
        raise Unreachable(group[0].method.name, "it took too long to be allowed out")

    def _checked_gate(self, call: Call[Any]) -> Gate:
        if self._gate is None:
            raise NoPermit(call.method.name)
        return self._gate

    async def read(self, call: Call[Any]) -> Any:
        """The result of a call that only reads, within the admission of another."""
        verdict = call.verdict(await self._wire.send(call.request(self._root)))
        if isinstance(verdict, GmailError):
            raise verdict
        return verdict

    async def labels_of(self, message_ids: Sequence[str]) -> Labels:
        """The labels that these messages have now; None for one that is gone."""
        wanted = [calls.get_message(each, "minimal") for each in message_ids]
        if len(wanted) == 1:
            found = [wanted[0].verdict(await self._wire.send(wanted[0].request(self._root)))]
        else:
            answer = await self._wire.send(batch.batch_request(wanted, self._root), batch.refuses_token)
            found = batch.outcomes(wanted, answer)
        labels: dict[str, frozenset[str] | None] = {}
        for message_id, verdict in zip(message_ids, found, strict=True):
            if isinstance(verdict, GmailError) and not isinstance(verdict, NotThere):
                raise verdict
            labels[message_id] = None if isinstance(verdict, GmailError) else verdict.label_ids
        return labels


class _Asking:
    """Asks the gate for one request, and reads what it wants to know first."""

    def __init__(self, way: GatedWire, gate: Gate, permits: Sequence[Permit]) -> None:
        self._way = way
        self._gate = gate
        self._permits = permits
        self._labels: Labels = {}
        self._listed: frozenset[UUID] = frozenset()

    def forget(self) -> None:
        """What was read is too old by now."""
        self._labels = {}
        self._listed = frozenset()

    async def clearance(self, may_read_labels: bool) -> Clearance | None:
        """The gate's answer; None when something was read for it, and it has to be asked again."""
        clearance = await self._gate.clear(self._permits, self._labels, self._listed)
        wanted = sorted({id for place, id in clearance.wants_labels.items() if place not in clearance.refused})
        if wanted:
            if not may_read_labels:
                raise LabelsNeeded
            self._labels = {**self._labels, **await self._way.labels_of(wanted)}
            return None
        if clearance.wants_names:
            account_id = self._permits[0].account_id
            await self._gate.learn_labels(account_id, await self._way.read(calls.list_labels()))
            self._listed = frozenset({account_id})
            return None
        return clearance


def _permit(call: Call[Any]) -> Permit:
    if call.permit is None:
        raise NoPermit(call.method.name)
    return call.permit
