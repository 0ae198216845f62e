"""The accounts on the page, read from a real store."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.heartbeat import parse_heartbeat
from postroom.core.mail.account_repair import repair_for
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.mailboxes.gmail.oauth import GoogleAppRefused
from postroom.mailboxes.gmail.scopes import LEVELS
from postroom.operations.accounts.account_status import AccountLine, account_lines
from postroom.store.accounts.accounts import (
    Consent,
    GivenAccess,
    connect_account,
    lose_consent,
    pause_account,
    remove_account,
)
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.connectors import record_heartbeat
from postroom.store.people.audit import Signature
from postroom.vault.sealing import Sealed
from support.clocks import ManualClock

MARA = "mara@lindqvist.example"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


def signed(reason: str | None = None) -> Signature:
    return Signature(new_id(), "cli:mara", "admin", reason)


def report(clock: ManualClock, **status: Any) -> dict[str, Any]:
    return {
        "schema_version": "connector.heartbeat.v1",
        "connector": {"connector_type": "gmail", "endpoint_identity": f"gmail:user:{MARA}", "instance_id": "host"},
        "status": {"state": "healthy", "uptime_s": 1.0, **status},
        "counters": {"ingested": 7, "refused": 2, "set_aside": 3},
        "sent_at": clock().isoformat(),
    }


async def test_an_account_is_shown_from_its_consent_to_its_removal(database: Database, clock: ManualClock) -> None:
    assert await account_lines(database, clock()) == []
    id, granted_at = new_id(), clock()
    dies_at = granted_at + timedelta(days=7)
    consent = Consent("app", "organise", frozenset(LEVELS["organise"]), granted_at, dies_at=dies_at)
    await database.run(
        connect_account(
            id, "gmail", MARA, GivenAccess({REFRESH_TOKEN: Sealed("key", "sealed")}, consent), signed(), granted_at
        )
    )
    assert await account_lines(database, clock()) == [AccountLine(MARA, "active", level="organise", provider="gmail")]

    await database.run(record_heartbeat(parse_heartbeat(report(clock)), heard_at := clock()))
    [shown] = await account_lines(database, clock())
    assert (shown.connector, shown.heard_at, shown.ingested, shown.refused, shown.set_aside, shown.trouble) == (
        "online", heard_at, 7, 2, 3, None,
    )  # fmt: skip
    assert shown.retry == f"postroom connector retry --account {MARA} --all"
    clock.forward(121)
    assert [each.connector for each in await account_lines(database, clock())] == ["stale"]
    trouble = report(clock, state="degraded", error_message="quota")
    await database.run(record_heartbeat(parse_heartbeat(trouble), clock()))
    assert [(each.connector, each.trouble) for each in await account_lines(database, clock())] == [("online", "quota")]

    clock.now = dies_at - timedelta(days=2)
    renewing = f"postroom account add gmail --email {MARA} --level organise"
    assert [(each.dies_at, each.command) for each in await account_lines(database, clock())] == [(dies_at, renewing)]
    await database.run(pause_account(id, signed("on holiday"), clock()))
    [paused] = await account_lines(database, clock())
    assert (paused.state, paused.reason, paused.command) == ("paused", "on holiday", f"postroom account resume {MARA}")
    await database.run(lose_consent(id, granted_at, "Google ended it", signed(), clock()))
    [lost] = await account_lines(database, clock())
    assert (lost.state, lost.reason, lost.command) == ("needs_consent", "Google ended it", renewing)
    await database.run(remove_account(id, signed(), clock()))
    assert await account_lines(database, clock()) == []


async def test_an_account_whose_app_was_refused_is_shown_with_what_helps_there(
    database: Database, clock: ManualClock
) -> None:
    id, granted_at = new_id(), clock()
    consent = Consent("app", "organise", frozenset(LEVELS["organise"]), granted_at)
    await database.run(
        connect_account(
            id, "gmail", MARA, GivenAccess({REFRESH_TOKEN: Sealed("key", "sealed")}, consent), signed(), granted_at
        )
    )
    reason = repair_for(str(GoogleAppRefused("invalid_client")), MARA)
    await database.run(lose_consent(id, granted_at, reason, signed(), clock()))
    [shown] = await account_lines(database, clock())
    assert (shown.reason, shown.command) == (
        "Google does not accept the app (invalid_client)", f"postroom account resume {MARA}",
    )  # fmt: skip
    assert shown.remedy == "check google.client_id and google.client_secret against the app in the Google Cloud console"
