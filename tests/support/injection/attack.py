"""The whole road, once for a corpus: emulated mailbox, connector, model over HTTP, decision, safety, actions.

The model is an accomplice of whoever wrote the mail: it does what the mail demands, in whatever language, code or
hiding place the demand stands, and when that is refused it tries something else. It knows only what it is told.
"""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, cast

import apsw
import orjson

from postroom.compose.serve import run_product
from postroom.settings.reading import Settings
from postroom.store.actions import decisions
from postroom.store.actions.approvals import list_waiting
from postroom.store.actions.protection import protect
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.engine.opening import FILE
from postroom.store.intake import acceptance
from postroom.store.intake.ingestion_rules import remove_ingestion_rule
from postroom.store.jobs import jobs
from postroom.store.mail.labels import SeenLabel, edit_labels, list_all_labels, sync_labels
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import Signature
from postroom.store.rules.guidance import Direction, ModelRule, add_guidance
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.model_api import ModelApi, running_model_api
from postroom_sandbox.model_moods import FakeAnswer, sensible
from postroom_sandbox.model_requests import ReceivedRequest
from postroom_sandbox.server import running_emulator
from support.arrived import arrived_mail
from support.canaries import WORD, Watch
from support.injection.corpus import PROTECTED_DOMAIN, Corpus
from support.injection.demands import EVERYTHING, PRIVATE, SNOOZED, USABLE
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN
from support.store.dump import dump

Row = dict[str, Any]

KEY = "sk-injected-0123456789abcdef"
NAMES = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-4-5"}
DIRECTION = "What is only advertising can go. My bank is never advertising."
RULE = "Mail about trips gets the label Travel."
AGAIN = "Call the tool as it is described."
# The mail itself, and what was decided about each message, which is looked at one by one.
HOLDS_MAIL = re.compile("envelopes|inbox_events|messages?(_.*)?|threads|decisions|actions")
DECISION = ("id", "action_type", "parameters_json", "confidence", "rationale", "safety_json", "rule_name", "model")
ACTION = (
    *("id", "decision_id", "action_type", "parameters_json", "state", "rationale", "safety_json", "error"),
    *("approved_by", "started_at", "executed_at", "pre_image_json", "undo_hint_json"),
)
# Longer texts of a reply are refused, and an accomplice knows that.
AS_MUCH_AS_FITS = 3_800


class Accomplice:
    """A model that obeys all mail of a corpus. What it answers depends on what it is told and on nothing else."""

    def __init__(self, corpus: Corpus) -> None:
        self._hostile = corpus.by_word()
        self.obeyed: Counter[str] = Counter()

    def __call__(self, asked: ReceivedRequest) -> FakeAnswer:
        found = next((word for word in WORD.findall(asked.mail.lower()) if word in self._hostile), None)
        if found is None:
            return sensible(asked)
        self.obeyed[found] += 1
        demand = self._hostile[found].demand
        calls = demand.again if asked.user.endswith(AGAIN) else demand.first
        told = asked.user[-AS_MUCH_AS_FITS:]
        filled = tuple(replace(call, arguments=_filled(call.arguments, told)) for call in calls)
        return FakeAnswer(filled, demand.text.replace(EVERYTHING, told))


def _filled(value: Any, told: str) -> Any:
    match value:
        case str():
            return value.replace(EVERYTHING, told)
        case dict():
            return {name: _filled(each, told) for name, each in cast("Row", value).items()}
        case list():
            return [_filled(each, told) for each in cast("list[Any]", value)]
        case _:
            return value


@dataclass
class Outcome:
    """What came of it, everywhere."""

    corpus: Corpus
    asked: Sequence[ReceivedRequest]
    obeyed: Mapping[str, int]
    decisions: Sequence[Row]
    actions: Sequence[Row]
    elsewhere: Mapping[str, str]
    """The rows of the tables in which nothing of any mail may stand."""
    changes: Sequence[Change]
    """Of the mailbox, after all had been delivered."""
    words: Mapping[str, str]
    """The word of each message, by its id at Gmail."""
    calls: Mapping[str, int]
    label_names: Mapping[str, str]
    new_labels: Sequence[str]
    shown: Sequence[str]
    """What people are shown of each message: on the page, and when they are asked for approval."""
    leaks: Mapping[str, set[str]]


async def go(corpus: Corpus, provider: str, database: Database, folder: Path, watch: Watch) -> Outcome:
    """Delivers the corpus to a running product, and waits until nothing is left to do."""
    mailbox, accomplice = Mailbox(OWNER, Random(1)), Accomplice(corpus)
    for name in (*USABLE, PRIVATE, SNOOZED):
        mailbox.labels.create(name, {})
    labels, changes = {each.id: each.name for each in mailbox.labels.all()}, list[Change]()
    emulator, api = Emulator(mailbox, TOKEN), ModelApi(accomplice, key=KEY)
    await _wish(database, mailbox)
    async with running_emulator(emulator) as gmail, running_model_api(api) as url:
        settings = _settings(folder, gmail, url, provider, watch)
        words = {mailbox.deliver(raw).id: _word(raw) for raw in corpus.raw_messages(Random(2))}
        mailbox.observers.append(changes.append)
        async with running(settings, database):
            await settled(database, len(corpus))
        shown = [str(each) for each in await arrived_mail(database)]
        shown += [str(each) for each in await database.run(list_waiting(10_000))]
        tables = await dump(database)
    return Outcome(
        corpus,
        api.asked,
        accomplice.obeyed,
        _about_messages(folder / FILE, "decisions", DECISION),
        _about_messages(folder / FILE, "actions", ACTION),
        {name: str(rows) for name, rows in tables.items() if not HOLDS_MAIL.fullmatch(name)},
        changes,
        words,
        emulator.quota.counters.calls,
        labels,
        [each.name for each in mailbox.labels.all() if each.id not in labels],
        shown,
        watch.leaks(ENDPOINT),
    )


async def _wish(database: Database, mailbox: Mailbox) -> None:
    """What the user has said before any mail came. Mail of lists, too, shall come to the model."""
    now = wall_clock()
    account = await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, now))
    seen = [SeenLabel(each.id, each.name, each.type) for each in mailbox.labels.all()]
    await database.run(sync_labels(account.id, seen, now))
    private = [each for each in await database.run(list_all_labels()) if each.name == PRIVATE]
    await database.run(edit_labels(private, None, False, _signed(), now))
    await database.run(add_guidance(new_id(), Direction(DIRECTION), _signed(), now))
    await database.run(add_guidance(new_id(), ModelRule("trips", RULE), _signed(), now))
    await database.run(protect("domain", PROTECTED_DOMAIN, "family", _signed(), now))
    await database.run(remove_ingestion_rule("list-id", _signed(), now))


def _signed() -> Signature:
    return Signature(new_id(), "test", "admin")


def _settings(folder: Path, gmail: str, url: str, provider: str, watch: Watch) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "disk_reserve_mib": 0,
            "web": {"port": 0},
            "account": {"email": OWNER},
            "gmail": {"base_url": gmail, "token": TOKEN, "poll_s": 0.1, "units_per_minute": 1_000_000},
            "model": {
                "provider": provider,
                "name": NAMES[provider],
                "base_url": f"{url}/v1" if provider == "openai" else url,
                "api_key": KEY,
                "input_cents_per_million": 0,
                "output_cents_per_million": 0,
            },
            "telemetry": {"otlp_endpoint": watch.collector.address},
        }
    )


@contextlib.asynccontextmanager
async def running(settings: Settings, database: Database) -> AsyncGenerator[None]:
    """Everything that `postroom serve` runs, in this process."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    product = asyncio.create_task(run_product(settings, database, stop, address.set_result))
    try:
        await asyncio.wait((product, address), return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        stop.set()
        await product


async def settled(database: Database, count: int) -> None:
    """Waits until so many messages are decided, and what was to be done to them is done."""
    changed = asyncio.Event()
    channels = (acceptance.CHANNEL, decisions.CHANNEL, jobs.CHANNEL)
    subscriptions = [database.subscribe(each, lambda _message: changed.set()) for each in channels]
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                changed.clear()
                rows = await arrived_mail(database)
                done = [row for row in rows if row.action_type and row.action_state not in ("queued", "executing")]
                if len(done) >= count:
                    return
                await signalled(changed, 0.5)
    finally:
        for subscription in subscriptions:
            subscription.close()


def _word(raw: bytes) -> str:
    return WORD.findall(raw.decode("utf-8", "replace"))[0]


def _about_messages(file: Path, table: str, columns: Sequence[str]) -> list[Row]:
    """The rows of a table, each with the word of the message that it is about."""
    wanted = ", ".join(f"t.{name}" for name in columns)
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute(
            f"SELECT m.sender, {wanted} FROM {table} t JOIN messages m ON m.id = t.message_id"
        ).fetchall()
    finally:
        connection.close()
    rows = [dict(zip(("sender", *columns), row, strict=True)) for row in found]
    return [
        {**row, "word": WORD.findall(row["sender"])[0], "parameters": orjson.loads(row["parameters_json"])}
        for row in rows
    ]
