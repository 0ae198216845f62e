"""SIGKILL of the submission server at any moment: every mail that was acknowledged is there, whole, and once."""

import asyncio
import contextlib
import itertools
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from postroom.store.engine.opening import open_database
from postroom.store.outbound.outbound_turns import miscounted_turns
from support.crash.evidence import Place
from support.patience import PATIENCE_S
from support.processes import Child, ProcessGroup
from support.scale import scale
from support.submission import ADA, added_sender, connected, queued_as

SERVER = "support.crash.submission_process"
CLIENTS = 8
LATEST_KILL_S = 0.4
MAILS = """
    SELECT m.id, m.subject, m.state, m.ready, c.content,
        (SELECT count(*) FROM outbound_recipients r WHERE r.mail_id = m.id),
        (SELECT count(*) FROM outbound_ready y WHERE y.mail_id = m.id)
    FROM outbound_mail m LEFT JOIN outbound_contents c ON c.mail_id = m.id
"""
COUNTED = "SELECT accepted FROM accepted_days WHERE level = 'sender'"


def message(name: str) -> bytes:
    return f"From: {ADA}\r\nDate: x\r\nMessage-ID: <{name}@x>\r\nSubject: {name}\r\n\r\n.{name}\r\n".encode()


@dataclass
class Ledger:
    """The names of mails by the ids under which they were acknowledged, and a signal at the first of each server."""

    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    names: "itertools.count[int]" = field(default_factory=itertools.count)
    first: asyncio.Event = field(default_factory=asyncio.Event)


async def submit_until_cut(port: int, number: int, ledger: Ledger) -> None:
    """One client: a mail after another over one connection, until the server is gone."""
    with contextlib.suppress(OSError, AssertionError, asyncio.IncompleteReadError):
        async with connected(port) as client:
            await client.ask(f"EHLO c{number}.example")
            while True:
                name = f"m{next(ledger.names)}"
                await client.envelope("bob@example.net", "carol@example.net")
                ledger.acknowledged[queued_as(await client.deliver(message(name)))] = name
                ledger.first.set()


async def kill_while_submitting(child: Child, rng: Random, ledger: Ledger) -> None:
    ready = await child.hear("ready")
    ledger.first.clear()
    clients = [asyncio.create_task(submit_until_cut(int(ready.details), number, ledger)) for number in range(CLIENTS)]
    await asyncio.wait_for(ledger.first.wait(), PATIENCE_S)  # on a busy machine this may take a while
    await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
    await child.kill()
    await asyncio.gather(*clients)


async def test_every_acknowledged_mail_survives_kills_whole_and_once(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    database = await open_database(place.folder, place.url)
    await added_sender(database)
    ledger = Ledger()
    for _ in range(scale(10, 100)):
        child = await children.start(SERVER, *place.arguments())
        await kill_while_submitting(child, rng, ledger)
    kept, acknowledged = await place.rows(MAILS), ledger.acknowledged
    found = {str(id): subject for id, subject, *_ in kept}
    assert {id: name for id, name in found.items() if id in acknowledged} == acknowledged
    assert set(Counter(subject for _, subject, *_ in kept).values()) == {1}
    for _, subject, state, ready, content, recipients, waiting in kept:
        assert (state, bool(ready), recipients, waiting) == ("queued", True, 2, 1)
        assert bytes(content).endswith(message(subject))
    assert await place.rows(COUNTED) == [(2 * len(kept),)]
    assert await database.run(miscounted_turns()) == []
    await database.close()
    print(f"{len(acknowledged)} acknowledged, {len(kept)} kept")
