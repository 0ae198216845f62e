"""The additions of `postroom demo` and `postroom sandbox` to the product: a sample mailbox, and sample rules."""

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

from pydantic import SecretStr

from postroom.core.errors import BadInput
from postroom.core.mail.files import mail_in
from postroom.core.rules.draft import RuleDraft
from postroom.settings.reading import DEFAULT_DATA_DIR, Settings
from postroom.settings.sections import ModelSettings, Section
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import add_rules
from postroom_sandbox.correspondents import OWNER
from postroom_sandbox.drip import drip
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.loading import load
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.model_api import ModelApi, running_model_api
from postroom_sandbox.quota import NEW_PROJECT
from postroom_sandbox.sample import arrivals, fill_sample
from postroom_sandbox.server import running_emulator

SEED = 2026
POLL_S = 1.0
FOLDER = ".postroom-demo"
MARKER = "this-is-a-demo"
STAND_IN = {
    "provider": "openai",
    "name": "stand-in",
    "input_cents_per_million": 0,
    "output_cents_per_million": 0,
}


@dataclass(frozen=True, slots=True)
class DemoMailbox:
    """The sandbox mailbox's address, token and owner, and the address of the model's stand-in."""

    address: str
    token: str
    owner: str
    model: str


@contextlib.asynccontextmanager
async def demo_mailbox(seed: int = SEED) -> AsyncGenerator[DemoMailbox]:
    """Run a sample mailbox in which mail keeps arriving every few seconds."""
    token = secrets.token_urlsafe()
    rng = Random(seed)  # noqa: S311 - a sample, not a secret
    mailbox = Mailbox(OWNER.address, rng)
    emulator = Emulator(mailbox, token, fill=lambda each: fill_sample(each, seed))
    async with running_emulator(emulator) as address, running_model_api(ModelApi()) as model:
        dripping = asyncio.create_task(drip(mailbox, arrivals(rng)))
        try:
            yield DemoMailbox(address, token, OWNER.address, f"{model}/v1")
        finally:
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)


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


def demo_settings(settings: Settings, mailbox: DemoMailbox, port: int | None) -> Settings:
    """Return the user's settings, pointed at the sandbox. The folder is emptied, since the mailbox is new each time."""
    folder = _own_folder(settings.data_dir)
    gmail = settings.gmail.model_copy(
        update={"base_url": mailbox.address, "token": SecretStr(mailbox.token), "poll_s": POLL_S}
    )
    web = settings.web if port is None else settings.web.model_copy(update={"port": port})
    changed: dict[str, Section] = {
        "gmail": gmail,
        "web": web,
        "account": settings.account.model_copy(update={"email": mailbox.owner}),
    }
    if settings.model.provider == "none":
        changed["model"] = ModelSettings.model_validate({**STAND_IN, "base_url": mailbox.model})
    return settings.model_copy(update={"data_dir": folder, "database_url": None, **changed})


def _own_folder(data_dir: Path) -> Path:
    """Return the demo's folder, never the user's own: sample rules must not meet real mail. Empty it."""
    folder = data_dir.with_name(FOLDER) if data_dir.name == DEFAULT_DATA_DIR.name else data_dir / FOLDER
    if (folder / MARKER).exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / MARKER).touch()
    return folder


async def add_sample_rules(database: Database) -> None:
    """Add a few rules that make the sample mailbox worth watching."""
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
    ]
    await database.run(add_rules(rules, wall_clock(), "sample"))
