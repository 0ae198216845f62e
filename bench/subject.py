"""The process in which our own side, or a raw probe, carries out one order: `python -m bench.subject NAME ORDER`."""

import sys

from . import inbox, load, ours
from .order import Order, Outcome, Verb, VerbFunction, serve
from .raw import inbox_postgres, inbox_sqlite, postgres, sqlite


async def _prepare(order: Order) -> Outcome:
    await ours.prepare(order.target)
    return Outcome()


async def _fill(order: Order) -> Outcome:
    await ours.fill(order.target, order.count)
    return Outcome()


async def _fill_sleeping(order: Order) -> Outcome:
    await ours.fill_sleeping(order.target, order.count)
    return Outcome()


async def _drain(order: Order) -> Outcome:
    return await ours.drain(order.target, order.count)


async def _enqueue(order: Order) -> Outcome:
    return await ours.enqueue(order.target, order.producers, order.count)


async def _claim_cost(order: Order) -> Outcome:
    return await ours.claim_cost(order.target, order.count, order.batch)


OURS: dict[Verb, VerbFunction] = {
    "prepare": _prepare,
    "fill": _fill,
    "fill_sleeping": _fill_sleeping,
    "drain": _drain,
    "enqueue": _enqueue,
    "claim_cost": _claim_cost,
    **inbox.VERBS,
}
SUBJECTS: dict[str, dict[Verb, VerbFunction]] = {
    "ours": OURS,
    "raw-postgres": {**postgres.VERBS, "consume": inbox_postgres.consume},
    "raw-sqlite": {**sqlite.VERBS, "consume": inbox_sqlite.consume},
    "client": load.VERBS,
}


if __name__ == "__main__":
    serve(SUBJECTS[sys.argv[1]])
