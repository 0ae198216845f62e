"""What the harness asks of a subject, what the subject answers, and how both cross a process boundary.

Only the standard library (and uvloop) is imported here: the same module runs in our environment and in the peers'.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

Database = Literal["postgres", "sqlite"]
Verb = Literal[
    "prepare",
    "fill",
    "fill_sleeping",
    "drain",
    "enqueue",
    "claim_cost",
    "fill_inbox",
    "lease_cost",
    "consume",
    "count_inbox",
    "hand_in",
    "arrive",
]
Door = Literal["ingest.batch", "ingest", "http"]
Terms = Literal["new", "older", "none"]

# A finished drain is noticed this late at most; at a second and more per drain that is below the noise.
POLL_SECONDS = 0.005
DRAIN_STALL_SECONDS = 120.0


@dataclass(frozen=True)
class Target:
    """An empty database made for one measurement: a URL of PostgreSQL, or the path of a SQLite file."""

    database: Database
    address: str


@dataclass(frozen=True)
class Order:
    """One verb for one subject on one target. `producers` is how many work at once, also when they consume.

    Orders for a client name the server's address, which of its doors to use, and the token for it.
    """

    verb: Verb
    target: Target
    count: int = 0
    producers: int = 0
    batch: int = 0
    rate: float = 0.0
    address: str = ""
    token: str = ""
    door: Door = "http"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Order":
        fields = json.loads(text)
        target = Target(**fields.pop("target"))
        return Order(target=target, **fields)


@dataclass(frozen=True)
class Outcome:
    """What a subject did. `finished` is counted in the database, not remembered by the subject; `grown_mib` is how much
    more memory it had at the end than halfway."""

    seconds: float = 0.0
    handled: int = 0
    finished: int = 0
    latencies: list[float] = field(default_factory=list[float])
    grown_mib: float = 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self))


VerbFunction = Callable[[Order], Awaitable[Outcome]]


def serve(verbs: Mapping[Verb, VerbFunction]) -> None:
    """The main of a subject's process: run the order given as the last argument, print the outcome as one line."""
    order = Order.from_json(sys.argv[-1])
    if order.verb not in verbs:
        sys.exit(f"this subject has no verb {order.verb!r}; it has {', '.join(verbs)}")
    answer(run(verbs[order.verb](order)).to_json())


def answer(text: str) -> None:
    """Say the answer, all of it: a pipe takes 64 KiB at once, and less of it when something made it non-blocking."""
    os.set_blocking(1, True)
    left = memoryview(f"{text}\n".encode())
    while left:
        left = left[os.write(1, left) :]


def run(work: Awaitable[Outcome]) -> Outcome:
    import uvloop

    async def main() -> Outcome:
        return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


class Tally:
    """Counts handled jobs and tells when the last one ran."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.handled = 0
        self._all_handled = asyncio.Event()

    def count_one(self) -> None:
        self.handled += 1
        if self.handled == self.expected:
            self._all_handled.set()

    async def wait_until_finished(self, unfinished: Callable[[], Awaitable[bool]]) -> float:
        """The moment the database holds no unfinished job; polled only after the last handler, so it costs nothing."""
        handled = -1
        while not self._all_handled.is_set():
            if self.handled == handled:
                raise RuntimeError(f"the drain stalled at {handled} of {self.expected} jobs")
            handled = self.handled
            try:
                await asyncio.wait_for(self._all_handled.wait(), DRAIN_STALL_SECONDS)
            except TimeoutError:
                continue
        while await unfinished():  # noqa: ASYNC110 - the news is in the database; no event tells it
            await asyncio.sleep(POLL_SECONDS)
        return time.perf_counter()


async def produce(
    enqueue_one: Callable[[int], Awaitable[object]], *, producers: int, total: int
) -> tuple[float, list[float]]:
    """Run `producers` tasks that share `total` numbered calls; returns the seconds of all and of each call."""
    numbers = iter(range(total))
    latencies: list[float] = []

    async def producer() -> None:
        for number in numbers:
            started = time.perf_counter()
            await enqueue_one(number)
            latencies.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(producer() for _ in range(producers)))
    return time.perf_counter() - started, latencies
