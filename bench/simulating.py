"""The process that replays stored mail: `python -m bench.simulating fill|simulate postgres|sqlite ADDRESS COUNT`.

The mail is that of the claim about rules, laid into the tables; so are the rules, 1,000 of them, some of which look at
the text. The change takes 100 out and gives 100 others another action. Each message is decided on twice.
"""

import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from postroom.core.actions.safety import Policy
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.rule import Rule
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.mail.mail import keep_account
from postroom.store.mail.simulation import MessageSelection
from postroom.triage.decide.simulated import SimulationRequest, SimulationResult, simulate

from .order import Outcome, Target, answer, run
from .ours import opened
from .ruling import NOW, messages, rules

CHUNK = 1_000
CHANGED = 100


async def fill(target: Target, count: int) -> Outcome:
    """Not measured."""
    mail = messages()
    async with opened(target) as database:
        await migrate(database)
        account = await database.run(keep_account(new_id(), "gmail", "gmail:user:m@x", "m@x.example", NOW))
        thread = new_id()
        for start in range(0, count, CHUNK):
            chunk = [(start + n, mail[(start + n) % len(mail)]) for n in range(min(CHUNK, count - start))]
            await database.run(_store(account.id, thread, chunk))
    return Outcome()


@transaction
def _store(account: Any, thread: Any, chunk: list[tuple[int, MessageFacts]]) -> Script[None]:
    threads = yield sql("upsert_thread", thread, account, "t", "a thread", NOW, NOW)
    for number, mail in chunk:
        named = (account, threads[0][0], new_id(), f"m{number}", "full", "default", mail.sender, mail.subject)
        texts = (json_text(mail.headers), json_text(sorted(mail.labels)), "", mail.body_text, mail.has_attachment)
        told = (mail.size, json_text(mail.attachments), mail.reply_to_mine)
        yield sql("insert_message", new_id(), *named, *texts, mail.sent_at, "", *told, False, NOW)


def change() -> tuple[list[Rule], list[Rule]]:
    before = rules()
    kept, starred = before[CHANGED:-CHANGED], before[-CHANGED:]
    return before, [*kept, *(replace(rule, action_type="star") for rule in starred)]


async def measure(target: Target, count: int) -> Outcome:
    """`finished` are the messages that were replayed, if the change was found to be one."""
    before, after = change()
    wanted = MessageSelection(datetime(2000, 1, 1, tzinfo=UTC), count)
    async with opened(target) as database:
        started = time.perf_counter()
        found: SimulationResult = await simulate(
            database, SimulationRequest(before, after, wanted, Policy(), False), NOW
        )
        seconds = time.perf_counter() - started
    return Outcome(seconds=seconds, handled=found.changed, finished=found.messages if found.changed else 0)


if __name__ == "__main__":
    verb, kind, address, number = sys.argv[1:]
    where = Target("postgres" if kind == "postgres" else "sqlite", address)
    work = fill(where, int(number)) if verb == "fill" else measure(where, int(number))
    answer(run(work).to_json())
