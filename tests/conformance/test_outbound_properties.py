"""Whatever is lost, refused, deleted or killed, at whichever step: no mail is sent twice, and none is forgotten.

The post office is a model of a mailbox whose calls fail before or after their effect; the database is real, and dies
before or after a commit. Every run is drawn from its seed.
"""

import asyncio
import os
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from postroom.core.lifecycle import DELIVERY
from postroom.mailboxes.gmail.errors import GmailRefused
from postroom.store.actions import actions, pauses
from postroom.store.engine.database import Database, Transaction
from postroom.store.outbound import outbound
from support.scale import scale
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.sending import Killed, Mortal, PostOffice, Run, T

OF_ACTION = {"sent": "completed", "bounced": "failed", "expired": "failed", "canceled": "canceled",
    "unknown": "executing"}  # fmt: skip


@pytest.mark.parametrize("chunk", range(2))
async def test_no_mail_is_sent_twice_and_none_is_forgotten(sqlite_setup: JobSetup, chunk: int) -> None:
    outcomes: Counter[str] = Counter()
    seed = int(os.environ.get("POSTROOM_TEST_SEED") or Random().randrange(2**32))
    print(f"seed {seed}")
    run = Run(sqlite_setup, seed)
    await run.admit(scale(15, 100))
    for _ in range(scale(60, 600)):
        await run.round()
        await run.disturb()
    await sqlite_setup.database.run(pauses.resume(pauses.ALL, signed(), sqlite_setup.clock()))
    run.post.trouble = 0
    async with asyncio.timeout(scale(60, 600)):
        while await run.round():
            pass
    acted = {each.id: each for each in await sqlite_setup.database.run(actions.list_actions(10_000))}
    for view in await sqlite_setup.database.run(outbound.list_mail(10_000)):
        outcomes[view.state] += 1
        assert view.action_id is not None
        check(run, view, acted[view.action_id])
    print(dict(outcomes))
    assert outcomes["sent"] > 0


class Refusing(PostOffice):
    """It takes no mail."""

    async def send_draft(self, draft_id: str) -> str | None:
        raise GmailRefused("drafts.send", 400, "invalidArgument", "look")


class DiesAt(Mortal):
    """The process dies right before the transaction of this name, once."""

    def __init__(self, database: Database, post: PostOffice, name: str) -> None:
        super().__init__(database, post.rng, post)
        self._name = name

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.name == self._name:
            self._name = ""
            raise Killed
        return await super().run(transaction)


async def test_a_process_killed_while_it_ends_a_refused_mail_leaves_no_doubt_about_it(sqlite_setup: JobSetup) -> None:
    run = Run(sqlite_setup, seed=1)
    run.post = Refusing(run.rng)
    run.post.trouble = 0
    run.database = DiesAt(sqlite_setup.database, run.post, "bounce")
    await run.admit(1)
    while await run.round():
        pass
    assert [states[-1] for states in run.seen.values()] == ["bounced"]
    assert run.post.drafts == {}


def check(run: Run, view: outbound.MailView, action: actions.ActionView) -> None:
    sent = run.post.left[view.id]
    assert sent <= 1, "sent twice"
    assert action.state == OF_ACTION[view.state]
    match view.state:
        case "sent":
            assert sent == 1
            assert action.undo_hint is not None
            assert action.undo_hint["sent_message_id"] == view.sent_message_id
            assert view.sent_message_id in run.post.in_sent or view.id in run.post.tampered
        case "unknown":
            assert view.id in run.post.tampered, "nobody meddled, and yet nobody knows"
        case _:
            assert sent == 0
    for before, after in pairwise(run.seen[view.id]):
        assert DELIVERY.may(before, after) or _through_one(before, after), f"{before} became {after}"


def _through_one(before: str, after: str) -> bool:
    """A look may miss one state in between."""
    return any(DELIVERY.may(between, after) for between in DELIVERY.moves[before])
