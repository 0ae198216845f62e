"""Faults that a test or a demo requests: matching calls fail as they would at Google.

Some faults change the answer of a call (`refuse`, `revoke`, `loop_pages`, `missing_fields`); they also apply to the
parts of a batch. The others affect the connection (`delay`, `reset`, `drop_reply`, `truncate`, `gzip_bomb`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal, get_args

from postroom_sandbox.refusal import Refusal

FaultKind = Literal[
    "refuse", "revoke", "loop_pages", "missing_fields", "delay", "reset", "drop_reply", "truncate", "gzip_bomb"
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
ANSWERS: frozenset[FaultKind] = frozenset({"refuse", "revoke", "loop_pages", "missing_fields"})
SEED = 20261115
# The number of calls over which a deviation from the share is corrected.
CORRECTED_OVER = 10

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
    """A fault for calls whose path contains `path`: for `times` of them, or for `seconds`.

    Of the matching calls a `share` is affected, at random but evenly: close to the share of any number of calls.
    `method` narrows to one of Google's methods, `user` to one mailbox.
    Without `times`, it affects one call; with `seconds` or a `share`, any number of calls.
    """

    code: int = 0
    reason: str = "backendError"
    path: str = "/gmail/"
    times: int | None = None
    retry_after: int | None = None
    kind: FaultKind = "refuse"
    method: str = ""
    user: str = ""
    share: float = 1.0
    seconds: float | None = None
    delay_s: float = 0.0
    fields: tuple[str, ...] = ()
    size: int = 256 << 20

    def refusal(self) -> Refusal:
        message = f"Fault ordered from the sandbox: {self.reason}"
        domain = "usageLimits" if self.reason.endswith("LimitExceeded") else "global"
        return Refusal(self.code, STATUSES[self.code], self.reason, message, self.retry_after, domain=domain)


@dataclass
class _PendingFault:
    fault: Fault
    ends_at: datetime | None
    left: int | None
    owed: float = 0.0
    """A pending fault, and how many more calls should have been affected so far for an exact share."""

    def is_drawn(self, rng: Random) -> bool:
        """Whether this call is affected: more likely if the share is behind, so that it is never far behind."""
        share = self.fault.share
        if share >= 1:
            return True
        drawn = rng.random() < share + self.owed / CORRECTED_OVER
        self.owed += share - drawn
        return drawn


class Faults:
    """The pending faults, oldest first. Shares are drawn from a seed."""

    def __init__(self, clock: Callable[[], datetime], seed: int = SEED) -> None:
        self.seed = seed
        self.struck: list[FaultKind] = []
        self._clock = clock
        self._rng = Random(seed)  # noqa: S311 - which calls fail is no secret
        self._waiting: list[_PendingFault] = []

    def __iter__(self) -> Iterator[Fault]:
        self._forget_ended()
        return iter([replace(each.fault, times=each.left) for each in self._waiting])

    def order(self, fault: Fault) -> None:
        ends_at = None if fault.seconds is None else self._clock() + timedelta(seconds=fault.seconds)
        once = fault.seconds is None and fault.share >= 1
        self._waiting.append(_PendingFault(fault, ends_at, 1 if fault.times is None and once else fault.times))

    def clear(self) -> None:
        self._waiting.clear()

    def answer_fault(self, path: str, method: str, user: str) -> Fault | None:
        """The fault for the answer of this call, if any."""
        return self._strike(lambda fault: fault.kind in ANSWERS and _concerns(fault, path, method, user))

    def connection_fault(self, path: str) -> Fault | None:
        """The fault for the connection of this request, if any."""
        return self._strike(lambda fault: fault.kind not in ANSWERS and fault.path in path)

    def _strike(self, meant: Callable[[Fault], bool]) -> Fault | None:
        self._forget_ended()
        for ordered in self._waiting:
            fault = ordered.fault
            if not meant(fault) or not ordered.is_drawn(self._rng):
                continue
            if ordered.left is not None:
                ordered.left -= 1
                if ordered.left == 0:
                    self._waiting.remove(ordered)
            self.struck.append(fault.kind)
            return fault
        return None

    def _forget_ended(self) -> None:
        if any(each.ends_at is not None for each in self._waiting):
            now = self._clock()
            self._waiting = [each for each in self._waiting if each.ends_at is None or now < each.ends_at]


def _concerns(fault: Fault, path: str, method: str, user: str) -> bool:
    return fault.path in path and fault.method in ("", method) and fault.user in ("", user)


def without_fields(answer: Any, fields: tuple[str, ...]) -> Any:
    """The answer without these fields at any depth; without names, everything but lists is left out."""
    if isinstance(answer, list):
        return [without_fields(each, fields) for each in _as_list(answer)]
    if isinstance(answer, dict):
        kept = {name: value for name, value in _as_dict(answer).items() if name not in fields}
        return {name: without_fields(value, fields) for name, value in kept.items()} if fields else {}
    return answer


def _as_list(answer: Any) -> list[Any]:
    return answer


def _as_dict(answer: Any) -> dict[str, Any]:
    return answer
