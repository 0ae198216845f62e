"""Postroom's side of the benchmark: the six verbs the harness asks of it.

Each verb runs in a fresh process of its own (`python -m bench.subject ours ORDER`) under uvloop, on a database made
for this one measurement. Measure the product as shipped: its logging, its telemetry, its durability, its public verbs.

The harness trusts nothing: `handled` must be the number of times the no-op handler ran and `finished` the number of
rows the database itself says are completed (or stored, for `enqueue`); a drain that lost or repeated a job is an
error, not a figure. `order.Tally` and `order.produce` do the counting and timing exactly as they do for the peers.
"""

from .order import Outcome, Target


class NotBuiltError(NotImplementedError):
    """This verb of our own side is not plugged in yet."""

    def __init__(self, verb: str) -> None:
        super().__init__(f"bench/ours.py: {verb}() is not plugged in yet; fill it in to measure Postroom")


async def prepare(target: Target) -> None:
    """Migrate the empty database."""
    raise NotBuiltError("prepare")


async def fill(target: Target, count: int) -> None:
    """Enqueue `count` ready no-op jobs with payload {"n": i}, as fast as bulk enqueue allows. Not measured."""
    raise NotBuiltError("fill")


async def fill_sleeping(target: Target, count: int) -> None:
    """Enqueue `count` jobs scheduled a day ahead. Not measured; they only lie beside the work."""
    raise NotBuiltError("fill_sleeping")


async def drain(target: Target, count: int) -> Outcome:
    """Work off exactly `count` no-op jobs with one worker in this process.

    `seconds` runs from just before the worker starts (connections may be open, nothing may be claimed) until every
    job is committed as completed. The worker is stopped after the clock.
    """
    raise NotBuiltError("drain")


async def enqueue(target: Target, producers: int, total: int) -> Outcome:
    """`producers` asyncio tasks share `total` calls of enqueue, each awaited until its own job is durable.

    `latencies` holds the seconds of each call; `finished` the jobs then in the database.
    """
    raise NotBuiltError("enqueue")


async def claim_cost(target: Target, claims: int, batch: int) -> Outcome:
    """Claim `batch` ready jobs, `claims` times, after one claim as warm-up that is not counted. Nothing is finished.

    `latencies` holds the seconds of each counted claim; `handled` the jobs they returned (claims x batch).
    """
    raise NotBuiltError("claim_cost")
