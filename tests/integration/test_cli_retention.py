"""`postroom retention`: nothing is pruned before it was shown, and a change of the settings asks again."""

import asyncio
import io
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postroom.core.jobs.types import CATALOGUE
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from postroom.store.jobs.new_jobs import new_job
from postroom.triage.handlers.retention_prune import RetentionPrune
from support.mail import keep_mail
from support.shell import Shell

MAILBOX = "mail in the mailbox itself is never touched"


@pytest.fixture
def old(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Two messages from two months ago, of which one is an invoice, and one of today."""
    monkeypatch.setenv("POSTROOM_RETENTION_FULL_DAYS", "30")
    monkeypatch.setenv("POSTROOM_RETENTION_CATEGORIES", '{"finance": 3650}')
    assert shell("migrate") == 0

    async def fill(database: Database) -> None:
        def then() -> datetime:
            return datetime.now(UTC) - timedelta(days=60)

        await keep_mail(database, then, 1, subject="An old plan")
        await keep_mail(database, then, 2, subject="Your invoice", sender="shop@store.example")
        await keep_mail(database, lambda: datetime.now(UTC), 3, subject="Today")

    run(shell, fill)
    return shell


def run(shell: Shell, work: Callable[[Database], Coroutine[Any, Any, None]]) -> None:
    async def opened() -> None:
        async with shell.application.open_database(load_settings({"data_dir": None})) as database:
            await work(database)

    asyncio.run(opened())


def daily_job(shell: Shell) -> None:
    """What the scheduler starts once a day."""

    class Run:
        job = new_job(CATALOGUE, "retention.prune", {})

        def check_canceled(self) -> None: ...

    async def work(database: Database) -> None:
        policy = load_settings({"data_dir": None}).retention.policy
        await RetentionPrune(database, policy)(Run())  # pyright: ignore[reportArgumentType]

    run(shell, work)
    shell.capture.readouterr()  # its log


def pruned(shell: Shell) -> list[int]:
    assert shell("audit", "list", "--action", "retention.prune", "--json") == 0
    return [each["after"]["messages"] for each in shell.json()]


def test_everything_is_kept_for_good_unless_the_settings_say_otherwise(shell: Shell):
    assert shell("migrate") == 0
    assert shell("retention", "show", "--json") == 0
    (row,) = shell.json()
    assert (row["full"], row["metadata"], row["pruned_every_day"]) == ("for good", "for good", False)
    for command in ("prune", "enable"):
        assert shell("retention", command, "--yes") == 2
        assert "keeps everything for good" in shell.err


def test_a_preview_shows_counts_and_samples_and_changes_nothing(old: Shell):
    assert old("retention", "preview") == 0
    assert "An old plan" in old.out
    assert "Today" not in old.out
    assert "Your invoice" not in old.out
    assert MAILBOX in old.out
    assert old("retention", "preview", "--json") == 0
    (row,) = old.json()
    assert (row["messages"], row["held"], row["tiers"]) == (1, 0, {"full": 1})
    assert "old plan" not in old.out, "subjects are for the terminal only"
    assert pruned(old) == []


def test_pruning_asks_and_without_a_preview_refuses_not_to_ask(old: Shell, monkeypatch: pytest.MonkeyPatch):
    assert old("retention", "prune", "--yes") == 2
    assert "postroom retention preview" in old.err
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert old("retention", "prune") == 1
    assert pruned(old) == []
    assert old("retention", "prune", "--yes", "--json") == 0
    assert old.json()[0]["messages"] == 1
    assert pruned(old) == [1]
    assert old("retention", "prune", "--yes") == 0
    assert MAILBOX in old.out
    assert old.out.startswith("0 messages pruned")


def test_the_daily_job_only_looks_until_these_settings_are_enabled(old: Shell, monkeypatch: pytest.MonkeyPatch):
    assert old("retention", "enable", "--yes") == 2
    assert "never tried" in old.err
    daily_job(old)
    assert pruned(old) == []
    assert old("retention", "enable", "--yes") == 0, "the daily job's dry run counts as a preview"
    monkeypatch.setenv("POSTROOM_RETENTION_FULL_DAYS", "29")
    daily_job(old)
    assert pruned(old) == []
    assert old("retention", "show", "--json") == 0
    assert old.json()[0]["pruned_every_day"] is False
    monkeypatch.setenv("POSTROOM_RETENTION_FULL_DAYS", "30")
    daily_job(old)
    assert pruned(old) == [1]
    assert old("retention", "show", "--json") == 0
    (row,) = old.json()
    assert (row["pruned_every_day"], row["last_pruned_messages"]) == (True, 1)


def test_what_is_disabled_is_not_pruned(old: Shell, monkeypatch: pytest.MonkeyPatch):
    assert old("retention", "preview") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert old("retention", "enable") == 0
    assert old("retention", "disable") == 0
    assert old("retention", "disable") == 0
    assert "was not enabled" in old.out
    daily_job(old)
    assert pruned(old) == []


def test_a_search_from_the_command_line_says_what_is_missing(shell: Shell):
    assert shell("migrate") == 0
    assert shell("search-and-ingest", "from:dr.smith") == 1
    assert "no mailbox is connected" in shell.err
    run(shell, lambda database: keep_one(database))
    for arguments, told in (
        (["x", "--max", "0"], "must be at least 1"),
        (["x", "--max", "51"], "must be at most 50"),
        ([" "], "query:"),
        (["x" * 1001], "query:"),
        (["x", "--account", "nobody@example.com"], "there is no account"),
    ):
        assert shell("search-and-ingest", *arguments) in (1, 2)
        assert told in shell.err


def test_a_search_without_a_connector_says_so_and_what_to_do(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    from postroom.operations.connectors import on_demand

    monkeypatch.setattr(on_demand, "PATIENCE_IF_OFFLINE", timedelta(0))
    assert shell("migrate") == 0
    run(shell, lambda database: keep_one(database))
    assert shell("search-and-ingest", "from:dr.smith", "--json") == 1
    assert shell.json()[0]["state"] == "queued"
    assert "postroom serve" in shell.err


async def keep_one(database: Database) -> None:
    await keep_mail(database, lambda: datetime.now(UTC))
