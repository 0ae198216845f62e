"""The status of each account: whether it is in use, its connector's last report, and what to do about problems."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from postroom.core.heartbeat import liveness
from postroom.core.mail.account_repair import (
    connect_command,
    dies_soon,
    reactivate_command,
    repair_in,
    resume_command,
    retry_command,
)
from postroom.core.mail.providers import SignIn
from postroom.core.views import Internal, Untrusted
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.store.intake import connectors


@dataclass(frozen=True, slots=True)
class AccountLine:
    """One account: whether it is in use, what was consented to, and its connector's last report."""

    email: str
    state: str
    """`active`, `paused` or `needs_consent`."""
    reason: Untrusted[str | None] = None
    level: str | None = None
    connector: str = "never"
    """`online`, `stale` or `offline`; `never` if none has reported yet."""
    heard_at: datetime | None = None
    trouble: Untrusted[str | None] = None
    """The connector's own report of its problem, if it has one."""
    ingested: int = 0
    refused: int = 0
    set_aside: int = 0
    """Messages that the mailbox has not returned so far; they are tried again."""
    dies_at: Annotated[datetime | None, "When its consent ends, if that is soon."] = None
    remedy: str | None = None
    """The problem to fix before the command helps, if it is not the consent."""
    command: Internal[str | None] = None
    """The command that fixes it, if there is something to fix."""
    retry: Internal[str | None] = None
    """The command that retries mail that was not ingested, if there is any."""
    provider: str = ""
    sign_in: Internal[SignIn] = "consent"
    """What its owner renews if the mailbox can no longer be opened."""
    server: Annotated[str | None, "The server that the mail is read from, over IMAP."] = None
    acts_from: Annotated[datetime | None, "Since when mail is acted on; none while all is decided in shadow."] = None


async def account_lines(database: Database, now: datetime) -> list[AccountLine]:
    """List the accounts that are not removed, oldest first."""
    known = await database.run(accounts.list_accounts())
    reports = connectors.last_reports(await database.run(connectors.list_connectors()))
    return [
        _with_report(_line(each, now), reports.get(each.endpoint_identity), now)
        for each in known
        if each.state != "removed"
    ]


def _line(account: accounts.AccountView, now: datetime) -> AccountLine:
    consent = account.consent
    level = None if consent is None else consent.level
    dies_at = consent.dies_at if consent is not None and dies_soon(consent.dies_at, now) else None
    server = None if account.servers is None else account.servers.imap_host
    line = AccountLine(
        account.email,
        account.state,
        account.state_reason,
        level,
        provider=account.provider,
        sign_in=account.sign_in,
        server=server,
        acts_from=account.acts_from,
    )
    again = reactivate_command(account.state, account.email, level, account.provider)
    match account.state:
        case "paused":
            return replace(line, command=resume_command(account.email))
        case "needs_consent" if repair := repair_in(account.state_reason, account.email):
            return replace(line, reason=repair.problem, remedy=repair.remedy, command=resume_command(account.email))
        case "needs_consent":
            return replace(line, command=again)
        case _ if dies_at is not None:
            return replace(line, dies_at=dies_at, command=connect_command(account.provider, account.email, level))
        case _:
            return line


def _with_report(line: AccountLine, report: connectors.ConnectorView | None, now: datetime) -> AccountLine:
    if report is None:
        return line
    refused, aside = report.counters.get("refused", 0), report.counters.get("set_aside", 0)
    return replace(
        line,
        connector=liveness(report.last_heartbeat_at, now),
        heard_at=report.last_heartbeat_at,
        trouble=None if report.state == "healthy" else report.error or report.state,
        ingested=report.counters.get("ingested", 0),
        refused=refused,
        set_aside=aside,
        retry=retry_command(line.email) if refused or aside else None,
    )
