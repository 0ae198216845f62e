"""Failures that a test or a demo orders from the emulator: the next calls that match are refused as Gmail would."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from postroom.sandbox.refusal import Refusal

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True)
class Fault:
    """`times` calls whose path contains `path` answer with `code` and Google's `reason`."""

    code: int
    reason: str = "backendError"
    path: str = "/gmail/"
    times: int = 1
    retry_after: int | None = None

    def refusal(self) -> Refusal:
        message = f"Fault ordered from the sandbox: {self.reason}"
        return Refusal(self.code, STATUSES[self.code], self.reason, message, self.retry_after)


class Faults:
    """The faults that are still to come, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._waiting)

    def order(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def strike(self, path: str) -> None:
        """Raises the first fault that waits for this path, and counts it."""
        for position, fault in enumerate(self._waiting):
            if fault.path in path:
                if fault.times > 1:
                    self._waiting[position] = replace(fault, times=fault.times - 1)
                else:
                    del self._waiting[position]
                raise fault.refusal()
