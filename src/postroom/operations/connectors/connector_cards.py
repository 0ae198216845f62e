"""The connectors as a person sees them: each mailbox and each source of events, whether it works, and what it brought.

An account without a report, and a report without an account, each make a card: the first waits for its connector, and
the second is a source of events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from postroom.core.access import READ
from postroom.core.errors import NotFound
from postroom.core.heartbeat import liveness
from postroom.core.mail.accounts import same_mailbox
from postroom.core.queue.queues import EMAIL, GATEWAY
from postroom.core.views import Internal, Shown
from postroom.mailboxes.providers import provider_named
from postroom.operations.accounts.account_status import AccountLine, account_lines
from postroom.operations.accounts.acting import ActingPlan, plan_acting
from postroom.operations.connectors.not_ingested import NotIngested, list_not_ingested
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import Argument, get
from postroom.operations.overview.volumes import Volume, counts_by_endpoint, volume_of
from postroom.operations.overview.windows import DEFAULT_WINDOW, Window, WindowName, window_of
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.store.intake import connectors
from postroom.store.intake.connectors import ConnectorView
from postroom.system.wall_clock import Clock

CHANNELS = (accounts.CHANNEL, "inbox", "jobs", "pauses")
MOST_LISTED = 100
LATELY = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ConnectorCard:
    """One connector: whose mail or events it brings, its last report, and how much arrived in 24 hours."""

    type: str
    identity: str
    account: AccountLine | None
    report: ConnectorView | None
    liveness: Annotated[str, "`online`, `stale`, `offline`, or `never` without a report."]
    arrived: Annotated[int, "Messages accepted in the last 24 hours."]

    @property
    def address(self) -> str:
        return f"/connectors/{quote(self.type, safe='')}/{quote(self.identity, safe='')}"

    @property
    def name(self) -> Shown[str]:
        return self.identity if self.account is None else self.account.email

    @property
    def is_well(self) -> Shown[bool]:
        in_use = self.account is None or self.account.state == "active"
        return in_use and self.liveness == "online" and self.report is not None and self.report.state == "healthy"


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """The units of the provider's quota that were spent in the minute before a moment."""

    units: int
    per_minute: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ConnectorDetail:
    """One connector in a window. `left_out` is mail that was refused or set aside, the newest first."""

    card: ConnectorCard
    account: Internal[AccountView | None]
    volume: Volume
    read_at: datetime
    instances: int
    quota: QuotaUse | None = None
    contacts_at: datetime | None = None
    contacts_are_stale: bool = False
    left_out: list[NotIngested] = field(default_factory=list[NotIngested])
    """At most MOST_LISTED."""
    left_out_count: int = 0
    acting: Internal[ActingPlan | None] = None
    """The effect of acting on the mail of the last days; None if the account acts already."""


@dataclass(frozen=True, slots=True)
class ConnectorLimits:
    """The settings about the connectors of mailboxes."""

    data_dir: Path
    units_per_minute: int
    contacts_stale: timedelta


@CONNECTORS.operation(READ, get("/connectors"))
async def list_connector_cards(database: Database, clock: Clock, /) -> list[ConnectorCard]:
    """All connectors: those of accounts first, then the other sources of events."""
    now = clock()
    known = [each for each in await database.run(accounts.list_accounts()) if each.state != "removed"]
    lines = {each.email: each for each in await account_lines(database, now)}
    reports = _last_reports(await database.run(connectors.list_connectors()))
    arrived = await counts_by_endpoint(database, window_of("24h", now))
    places = [(each.provider, each.endpoint_identity) for each in known]
    emails = {each.endpoint_identity: each.email for each in known}
    places += sorted(place for place in reports if place not in set(places))
    return [
        _card(place, lines.get(emails.get(place[1], "")), reports.get(place), arrived.get(place[1], 0), now)
        for place in places
    ]


def _last_reports(found: list[ConnectorView]) -> Mapping[tuple[str, str], ConnectorView]:
    oldest_first = sorted(found, key=lambda each: each.last_heartbeat_at)
    return {(each.connector_type, each.endpoint_identity): each for each in oldest_first}


def _card(
    place: tuple[str, str], line: AccountLine | None, report: ConnectorView | None, arrived: int, now: datetime
) -> ConnectorCard:
    alive = "never" if report is None else liveness(report.last_heartbeat_at, now)
    return ConnectorCard(*place, line, report, alive, arrived)


@CONNECTORS.operation(READ, get("/connectors/{type}/{identity:path}"))
async def load_connector(
    database: Database,
    limits: ConnectorLimits,
    clock: Clock,
    /,
    type: Annotated[str, Argument("The type of the connector, such as gmail.", most=100)],
    identity: Annotated[str, Argument("Its endpoint identity.")],
    window: Annotated[WindowName, Argument("The window of the counts.")] = DEFAULT_WINDOW,
) -> ConnectorDetail:
    """One connector: its health, what it delivered in the window, its quota, and what it left out."""
    now = clock()
    cards = {(each.type, each.identity): each for each in await list_connector_cards(database, clock)}
    card = cards.get((type, identity))
    if card is None:
        raise NotFound(f"there is no connector {type} for {identity[:200]}; /connectors lists them")
    account = await _account(database, identity)
    instances = len(await database.run(connectors.connectors_of(identity)))
    volume = await _volume(database, window_of(window, now), card)
    if account is None:
        return ConnectorDetail(card, None, volume, now, instances)
    left_out = [each for each in list_not_ingested(limits.data_dir) if same_mailbox(each.account, account.email)]
    contacts_at = None if card.report is None else card.report.contacts_generated_at
    return ConnectorDetail(
        card,
        account,
        volume,
        now,
        instances,
        _quota(limits, account),
        contacts_at,
        contacts_at is not None and now - contacts_at > limits.contacts_stale,
        left_out[::-1][:MOST_LISTED],
        len(left_out),
        None if account.acts_from is not None else await plan_acting(database, str(account.id), now - LATELY, clock),
    )


async def _account(database: Database, identity: str) -> AccountView | None:
    known = await database.run(accounts.list_accounts())
    return next((each for each in known if each.endpoint_identity == identity and each.state != "removed"), None)


async def _volume(database: Database, window: Window, card: ConnectorCard) -> Volume:
    usual = GATEWAY if card.account is None else EMAIL
    return await volume_of(database, window, usual.tiers, endpoint_identity=card.identity)


def _quota(limits: ConnectorLimits, account: AccountView) -> QuotaUse | None:
    noted = provider_named(account.provider).spending(
        limits.data_dir / "connectors" / f"{account.provider}-{account.email}"
    )
    return None if noted is None else QuotaUse(noted.units, limits.units_per_minute, noted.at)
