"""Sends a group of calls in one request. Calls that only read are sent directly; each call that changes something
passes the gate, and those that may not be sent are left out.

Labels can be protected, but Gmail changes a message whatever its labels are by then. So if any label is protected, the
labels of each message are read right before the change: the price of a change includes the units of that
`messages.get`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from postroom.core.actions.permits import Permit
from postroom.core.errors import PostroomError
from postroom.core.mail.gate import ClearanceExpired, ClearanceRequest, Gate, Labels
from postroom.core.mail.mailbox import MailboxLabel
from postroom.mailboxes.gmail import batch, calls
from postroom.mailboxes.gmail.calls import Call
from postroom.mailboxes.gmail.errors import GmailError, NoPermit, NotThere, TooBusy
from postroom.mailboxes.gmail.methods import GET_MESSAGE, LIST_LABELS
from postroom.mailboxes.gmail.wire import Answer, Request, Wire, is_401

# How often the gate is asked for one request whose clearance expires, or for which labels must be read first.
MOST_ASKS = 10


class LabelsNeeded(Exception):
    """Labels were protected after the units were taken: the request must be admitted again, at its new price."""


class Sent(NamedTuple):
    """The calls that were sent, by index, and their answer, if any; and why others were not sent."""

    places: tuple[int, ...]
    answer: Answer | None
    refused: Mapping[int, PostroomError]


class GatedWire:
    """The connection to Gmail for one mailbox, through the gate."""

    def __init__(self, wire: Wire, gate: Gate | None, root: str) -> None:
        self._wire = wire
        self._gate = gate
        self._root = root

    @property
    def server_time(self) -> datetime | None:
        """Gmail's time when it last answered."""
        return self._wire.server_time

    @property
    def reads_labels(self) -> bool:
        """Whether labels are read before changes, as far as known."""
        return self._gate is not None and self._gate.protects_labels

    def extra_price(self, group: Sequence[Call[Any]], prices: Callable[[str], int]) -> int:
        """The cost of reading labels before the changes of this group, if any label is protected."""
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
        """Send the calls of the group that may be sent. Raises LabelsNeeded, TooBusy, and the errors of the wire and
        the gate.
        """
        changes = [place for place, call in enumerate(group) if call.method.changes]
        if not changes:
            answer = await self._wire.send(make(group), refuses_token)
            return Sent(tuple(range(len(group))), answer, {})

        async def labels_of(ids: Sequence[str]) -> Labels:
            if not may_read_labels:
                raise LabelsNeeded
            return await self.labels_of(ids)

        gate, permits = self._checked_gate(group[changes[0]]), [_permit(group[each]) for each in changes]
        asking = ClearanceRequest(gate, permits, labels_of, self._list_labels)
        for _ in range(MOST_ASKS):
            clearance = await asking.clearance()
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
        raise TooBusy(group[0].method.name)

    def _checked_gate(self, call: Call[Any]) -> Gate:
        if self._gate is None:
            raise NoPermit(call.method.name)
        return self._gate

    async def _list_labels(self) -> list[MailboxLabel]:
        """All labels of the mailbox, read within the admission of another call."""
        call = calls.list_labels()
        verdict = call.verdict(await self._wire.send(call.request(self._root)))
        if isinstance(verdict, GmailError):
            raise verdict
        return [each.as_mailbox_label() for each in verdict]

    async def labels_of(self, message_ids: Sequence[str]) -> Labels:
        """The current labels of these messages; None for one that is gone."""
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


def _permit(call: Call[Any]) -> Permit:
    if call.permit is None:
        raise NoPermit(call.method.name)
    return call.permit
