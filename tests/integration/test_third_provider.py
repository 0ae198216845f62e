"""A provider is one folder and one line: a third one, which only the tests have, is connected by command and page,
shown, previewed, estimated for a backfill, and acted on, by the parts of the product.
"""

import asyncio
import contextlib
import io
import sys
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.compose.application import PostroomApplication
from postroom.compose.gate import MailboxGate
from postroom.compose.mailboxes import Mailboxes
from postroom.compose.pages import all_pages
from postroom.compose.switchboard import dispatcher_of, open_services, switchboard_for
from postroom.compose.tasks import background
from postroom.compose.worker import running_jobs
from postroom.core.backfill.job import NewBackfill
from postroom.core.mail.providers import PROVIDERS
from postroom.core.roles import Role
from postroom.core.rules.draft import RuleDraft
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.interfaces.http.services import Services
from postroom.operations.accounts.accounts import AccountView, list_accounts
from postroom.operations.accounts.connecting import connect_with_fields
from postroom.operations.actions.undo import UndoSelection, undo_selection
from postroom.operations.caller import Caller
from postroom.operations.parts import Parts
from postroom.operations.people.audit import Signature, signature
from postroom.operations.preview.preview_account import fetch_mail
from postroom.settings.reading import Settings, load_settings
from postroom.store.accounts.accounts import act_from
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from support.arrived import ArrivedMail, arrived_mail
from support.clocks import ManualClock
from support.folder_mailbox import Folders
from support.folders.facts import NAME
from support.folders.provider import OPENS, SERVED
from support.intake_pages import said_in
from support.page_app import as_visitor, visitor
from support.page_forms import submit
from support.patience import PATIENCE_S
from support.shell import Shell
from support.until import until

OWNER = "mara@lindqvist.example"
ENDPOINT = f"folders:user:{OWNER}"


def signed() -> Signature:
    return signature("cli:mara", Role.ADMIN)


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    """The mailbox, whose provider is known by one entry."""
    monkeypatch.setitem(PROVIDERS, NAME, "support.folders")
    SERVED[OWNER] = Folders()
    yield SERVED[OWNER]
    SERVED.clear()


def mail(subject: str) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@store.example", OWNER, subject
    message["Date"] = datetime.now(UTC)
    message.set_content("Your invoice is attached.")
    return message.as_bytes()


def settings_in(folder: Path) -> Settings:
    return load_settings({"data_dir": folder}, environ={}, cwd=folder)


async def connected(database: Database, settings: Settings) -> AccountView:
    fields = {"password": OPENS}
    account = (await connect_with_fields(Caller(database, signed()), settings, NAME, OWNER, fields)).account
    return await database.run(act_from(account.id, datetime(2020, 1, 1, tzinfo=UTC), signed(), wall_clock()))


def test_it_is_connected_by_the_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("wrong\n"))
    assert shell("account", "add", NAME, "--email", OWNER) != 0
    assert "not open the folders" in shell.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{OPENS}\n"))
    assert shell("account", "add", NAME, "--email", OWNER) == 0, shell.err
    assert f"{OWNER}  connected in folders" in shell.out
    assert "A label moves the message to a folder." in shell.err
    assert shell("account", "list", "--json") == 0
    assert [(each["provider"], each["email"], each["state"]) for each in shell.json()] == [(NAME, OWNER, "active")]
    assert shell("account", "add", "jmap", "--email", OWNER) != 0
    assert "use gmail or imap or folders" in shell.err
    assert shell("account", "add", NAME, "--email", OWNER, "--imap-host", "x") != 0
    assert "is not for folders" in shell.err
    assert shell("account", "remove", OWNER) == 0


async def test_it_is_connected_on_a_page_and_shown(sqlite: Database, tmp_path: Path, clock: ManualClock) -> None:
    site = Site(Parts(settings_in(tmp_path), sqlite, clock), "owner@example.org")
    whole = as_visitor(create_application(site, all_pages(site), allowed_hosts=("127.0.0.1",)), visitor("admin"))
    address = "http://127.0.0.1:8025"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=whole), base_url=address) as page:
        assert 'href="/connectors/new/folders">Connect in folders</a>' in (await page.get("/connectors")).text
        assert 'name="password"' in (await page.get("/connectors/new/folders")).text
        assert (await page.get("/connectors/new/jmap")).status_code == 404
        refused = said_in(await submit(page, "/connectors/new/folders/connect", {"email": OWNER, "password": "no"}))
        assert "does not open the folders" in refused.sentence
        answer = await submit(page, "/connectors/new/folders/connect", {"email": OWNER, "password": OPENS})
        assert f"{OWNER} is connected in folders." in said_in(answer).sentence
        assert OWNER in (await page.get(answer.headers["location"])).text
        assert OWNER in (await page.get("/connectors")).text
        assert f'value="{ENDPOINT}"' in (await page.get("/backfill/new")).text
    (account,) = await list_accounts(sqlite)
    assert (account.provider, account.endpoint_identity) == (NAME, ENDPOINT)


async def test_its_newest_mail_is_read_for_a_preview(sqlite: Database, tmp_path: Path, folders: Folders) -> None:
    settings = settings_in(tmp_path)
    await connected(sqlite, settings)
    folders.put(mail("The one"))

    def opening(database: Database, id: Any) -> Any:
        return PostroomApplication().open_source(settings, database, id)

    found = await fetch_mail(sqlite, OWNER, 10, opening, lambda _count: None)
    assert [b"The one" in each.mail.raw for each in found.newest.messages] == [True]


@contextlib.asynccontextmanager
async def running(database: Database, folder: Path) -> AsyncGenerator[Services]:
    """What `postroom serve` runs, but for the pages: the connector, the dispatcher and the jobs."""
    settings = Settings.model_validate({"data_dir": folder, "jobs": {"poll_s": 0.1, "drain_s": 1}})
    account, stop = await connected(database, settings), asyncio.Event()
    async with (
        httpx2.AsyncClient(timeout=PATIENCE_S) as http,
        MailboxGate.open(database) as gate,
        open_services(settings, database, http, None) as services,
        contextlib.aclosing(Mailboxes(settings, database, http, None, gate)) as mailboxes,
        background(dispatcher_of(services).run(), stop),
        background(mailboxes.watch(account, switchboard_for(services, ENDPOINT), services.tally), stop),
        running_jobs(settings, database, mailboxes, stop, concurrency=4),
    ):
        yield services


async def test_its_mail_is_acted_on_and_the_action_undone(sqlite: Database, tmp_path: Path, folders: Folders) -> None:
    rule = RuleDraft("invoices", {"subject_contains": "invoice"}, "archive", {})
    await sqlite.run(add_rules([(new_id(), rule)], wall_clock()))

    async def rows() -> list[ArrivedMail]:
        return await arrived_mail(sqlite)

    async def places() -> list[str]:
        return [kept.folder for kept in folders.messages.values()]

    async with running(sqlite, tmp_path):
        folders.put(mail("Your invoice"))
        await until(sqlite, rows, lambda rows: [each.action_state for each in rows] == ["completed"])
        assert await places() == ["archive"]
        await undo_selection(Caller(sqlite, signed()), UndoSelection(rule="invoices"))
        await until(sqlite, places, lambda found: found == ["INBOX"])


async def test_a_backfill_of_it_is_estimated_and_done(sqlite: Database, tmp_path: Path, folders: Folders) -> None:
    folders.put(mail("Your invoice"), folder="archive")
    today = wall_clock().date()
    wanted = NewBackfill(NAME, ENDPOINT, ("finance",), today - timedelta(days=2), today)
    async with running(sqlite, tmp_path) as services:
        made = await services.parts.estimates.estimate(wanted, signed())
        assert made.form.to_read.expected == 1
        assert made.form.hours_at_quota == 0
        job = (await services.parts.backfills.create(made.agreed, signed())).job
        assert (job.connector_type, job.status) == (NAME, "pending")
