"""The additions of `postroom demo` and `postroom sandbox` to the product: a sample mailbox, and sample rules."""

import asyncio
import contextlib
import json
import secrets
import shutil
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

from pydantic import SecretStr

from postroom.core.errors import BadInput
from postroom.core.mail.files import mail_in
from postroom.core.rules.draft import RuleDraft
from postroom.operations.installation.demo import MARKER, demo_folder
from postroom.settings.locations import FILE_NAME
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings, Section
from postroom.store.accounts.accounts import list_accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.serve_lock import FILE as LOCK_FILE
from postroom.store.engine.serve_lock import serve_lock
from postroom.store.rules.rules import add_rules
from postroom.system.folder_errors import folder_error
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.correspondents import OWNER
from postroom_sandbox.drip import drip
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.loading import load
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.model_api import ModelApi, running_model_api
from postroom_sandbox.quota import NEW_PROJECT
from postroom_sandbox.sample import arrivals, fill_sample
from postroom_sandbox.server import running_emulator
from postroom_sandbox.snapshot import load_mailbox, save_mailbox
from postroom_sandbox.story import StoryMail

SEED = 2026
POLL_S = 1.0
MAILBOX_FILE = "mailbox.json"
SAVED_EVERY_S = 30.0
STAND_IN = {
    "provider": "openai",
    "name": "stand-in",
    "input_cents_per_million": 0,
    "output_cents_per_million": 0,
}


@dataclass(frozen=True, slots=True)
class DemoMailbox:
    """The sandbox mailbox's address, token and owner, and the address of the model's stand-in.

    `story` has the mail of the first minute; None if an earlier demo has told it. Other mail waits for `told`.
    """

    address: str
    token: str
    owner: str
    model: str
    story: StoryMail | None
    told: asyncio.Event


@contextlib.asynccontextmanager
async def demo_mailbox(folder: Path, seed: int = SEED) -> AsyncGenerator[DemoMailbox]:
    """Run a mailbox in which mail keeps arriving every few seconds: the one in the folder, or a new sample."""
    token, file = secrets.token_urlsafe(), folder / MAILBOX_FILE
    mailbox = Mailbox(OWNER.address, Random(seed))  # noqa: S311 - a sample, not a secret
    is_kept = load_mailbox(mailbox, file)
    # Other mail arrives after a restart than did at first.
    rng = mailbox.rng = Random(f"{seed} {mailbox.history_id}") if is_kept else mailbox.rng  # noqa: S311
    emulator = Emulator(mailbox, token, fill=_nothing if is_kept else lambda each: fill_sample(each, seed))
    async with running_emulator(emulator) as address, running_model_api(ModelApi()) as model:
        story, told = None if is_kept else StoryMail(emulator, Random(seed)), asyncio.Event()  # noqa: S311
        tasks = [
            asyncio.create_task(_drip_after(told, mailbox, rng)),
            asyncio.create_task(_keep_saving(mailbox, file)),
        ]
        try:
            yield DemoMailbox(address, token, OWNER.address, f"{model}/v1", story, told)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            save_mailbox(mailbox, file)


async def _drip_after(told: asyncio.Event, mailbox: Mailbox, rng: Random) -> None:
    await told.wait()
    await drip(mailbox, arrivals(rng))


def _nothing(_mailbox: Mailbox) -> None:
    """Leave the mailbox as it is."""


async def _keep_saving(mailbox: Mailbox, file: Path) -> None:
    while True:
        save_mailbox(mailbox, file)
        await asyncio.sleep(SAVED_EVERY_S)


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """The settings of the emulator. `mail` is a path to mail that replaces the sample."""

    port: int
    seed: int = SEED
    mail: Path | None = None
    user: str | None = None
    units_per_minute: int = 0
    search_lag_s: float = 0.0


@contextlib.asynccontextmanager
async def sandbox_mailbox(plan: SandboxPlan, token: str, report: Callable[[str], None]) -> AsyncGenerator[str]:
    """Run only the emulator. Call `report` with the number of messages loaded, and each that could not be read."""
    rng, lag = Random(plan.seed), timedelta(seconds=plan.search_lag_s)  # noqa: S311 - a sample, not a secret
    mailbox = Mailbox(plan.user or OWNER.address, rng, search_lag=lag)
    limits = replace(NEW_PROJECT, per_user_minute=plan.units_per_minute or None)

    def fill(each: Mailbox) -> None:
        if plan.mail is None:
            return fill_sample(each, plan.seed)
        loaded = load(each, mail_in(plan.mail))
        report(f"{loaded.messages} messages from {plan.mail}")
        for problem in loaded.problems:
            report(f"not loaded: {problem.where}: {problem.why}")

    emulator = Emulator(mailbox, token, fill, limits=limits, seed=plan.seed)
    async with contextlib.AsyncExitStack() as running:
        try:
            address = await running.enter_async_context(running_emulator(emulator, plan.port))
        except OSError as error:
            problem = f"{plan.port} is not available ({error.strerror})"
            raise BadInput("port", problem, "choose another one, or 0 for any that is free") from error
        yield address


@contextlib.contextmanager
def held_demo_folder(data_dir: Path, fresh: bool) -> Generator[Path]:
    """Yield the demo's folder, used by no other process meanwhile; emptied first if it is to be fresh."""
    folder = demo_folder(data_dir)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(serve_lock(folder))
            if fresh and (folder / MARKER).exists():
                _empty(folder)
            (folder / MARKER).touch()
        except OSError as error:
            raise folder_error(folder, error) from error
        yield folder


def _empty(folder: Path) -> None:
    """Delete everything in the folder but the lock, which this process holds."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != LOCK_FILE:
            entry.unlink()


def demo_settings(settings: Settings, mailbox: DemoMailbox, folder: Path, port: int | None) -> Settings:
    """Return the user's settings, pointed at the sandbox. What other commands need of them is written to the folder."""
    gmail = settings.gmail.model_copy(
        update={"base_url": mailbox.address, "token": SecretStr(mailbox.token), "poll_s": POLL_S}
    )
    web = settings.web if port is None else settings.web.model_copy(update={"port": port})
    changed: dict[str, Section] = {
        "gmail": gmail,
        "web": web,
        "account": settings.account.model_copy(update={"email": mailbox.owner}),
    }
    file = folder / FILE_NAME
    if settings.model.provider == "none" or settings.model.name == STAND_IN["name"]:
        model = {**STAND_IN, "base_url": mailbox.model}
        changed["model"] = ModelSettings.model_validate(model)
        lines = [f"{name} = {json.dumps(value)}" for name, value in model.items()]
        file.write_text("\n".join(["# Written by `postroom demo`.", "[model]", *lines, ""]), encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
    return settings.model_copy(update={"data_dir": folder, "database_url": None, **changed})


async def add_sample_rules(database: Database) -> None:
    """Add a few rules that make the sample mailbox worth watching, once: those that were removed stay removed."""
    if await database.run(list_accounts()):
        return
    rules = [
        (
            new_id(),
            RuleDraft(
                "Newsletters out of the inbox",
                {"header_match": {"name": "List-Unsubscribe"}},
                "archive",
                {},
                "Mail with an unsubscribe header is archived.",
                priority=50,
            ),
        ),
        (
            new_id(),
            RuleDraft(
                "Receipts and orders",
                {"subject_regex": r"\b(receipt|invoice|order|payment|parcel|shipp\w+|deliver\w+)\b"},
                "apply_label",
                {"label": "Receipts"},
                "Receipts, invoices and shipping notices get a label.",
                priority=40,
            ),
        ),
        (
            new_id(),
            RuleDraft(
                "Appointments",
                {"or": [{"subject_contains": "appointment"}, {"subject_contains": "Termin"}]},
                "apply_label",
                {"label": "Appointments"},
                "The doctor's practice gets a label and stays in the inbox.",
                priority=30,
            ),
        ),
        (
            new_id(),
            RuleDraft(
                "Mailing lists",
                {"header_match": {"name": "Precedence", "pattern": "^(list|bulk|junk)$"}},
                "archive",
                {},
                "Lists that announce themselves as such are archived.",
                priority=60,
            ),
        ),
        (
            new_id(),
            RuleDraft(
                "Invitations to the office",
                {"subject_contains": "Invitation"},
                "forward",
                {"to": ["office@halden-frost.example"]},
                "Forwarding sends mail, so each one needs your approval.",
                priority=20,
            ),
        ),
    ]
    await database.run(add_rules(rules, wall_clock(), "sample"))
