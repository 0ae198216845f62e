"""The sandbox's own surface, beside Google's: deliver mail, order faults, set everything back."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from postroom.sandbox.faults import STATUSES, Fault, Faults
from postroom.sandbox.mailbox import ARRIVING, Mailbox
from postroom.sandbox.refusal import invalid, too_large
from postroom.sandbox.requests import Parameters, json_body, text_in

Json = dict[str, Any]

# Google's own limit for a message.
LARGEST_MESSAGE = 36_700_160


class Control:
    """What tests and the demo do to the mailbox from outside."""

    def __init__(self, mailbox: Mailbox, faults: Faults, fill: Callable[[Mailbox], None]) -> None:
        self._mailbox = mailbox
        self._faults = faults
        self._fill = fill

    async def deliver(self, request: Request) -> Json:
        """The body is the raw mail; `labelIds` says where it goes, by default into the inbox, unread."""
        labels = Parameters(request).only("labelIds").texts("labelIds") or ARRIVING
        raw = bytearray()
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > LARGEST_MESSAGE:
                raise too_large(LARGEST_MESSAGE)
        message = self._mailbox.deliver(bytes(raw), labels)
        return {**message.reference(), "labelIds": sorted(message.labels), "historyId": str(message.history_id)}

    async def list_faults(self, request: Request) -> Json:
        return {"faults": [vars(fault) for fault in self._faults]}

    async def order_fault(self, request: Request) -> Json:
        fields = await json_body(request, "code", "reason", "path", "times", "retry_after")
        wait = fields.get("retry_after")
        fault = Fault(
            code=_number(fields, "code", 0),
            reason=text_in(fields, "reason") or Fault.reason,
            path=text_in(fields, "path") or Fault.path,
            times=_number(fields, "times", Fault.times),
            retry_after=None if wait is None else _number(fields, "retry_after", 0),
        )
        if fault.code not in STATUSES:
            raise invalid(f"code {fault.code} is not one of {', '.join(map(str, STATUSES))}")
        self._faults.order(fault)
        return vars(fault)

    async def reset(self, request: Request) -> Json:
        """Back to the beginning: no faults, and in the mailbox what was in it at first."""
        self._faults.clear()
        self._mailbox.clear()
        self._fill(self._mailbox)
        return {"messages": len(self._mailbox)}


def _number(fields: Json, name: str, default: int) -> int:
    value: object = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(f"{name} is not a number")
    return value
