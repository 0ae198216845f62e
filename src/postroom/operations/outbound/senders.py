"""Senders: add and list them, set passwords, throttle, release, disable and enable them."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from postroom.core.access import ADMINISTER, OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.priority import DEFAULT_PLAN, PLANS, Throttle
from postroom.core.suggestions import did_you_mean
from postroom.core.views import Done
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, command, dialogue, form, get, post
from postroom.operations.outbound.tenants import TenantName, checked_domain, checked_name, checked_weight, load_tenant
from postroom.store.engine.database import Database
from postroom.store.outbound import senders
from postroom.store.outbound.sender_notices import SYSTEM
from postroom.store.outbound.senders import NewSender, SenderView
from postroom.store.outbound.tenants import TenantView
from postroom.system.wall_clock import Clock
from postroom.vault.passwords import hash_password

MOST_SHOWN = 50
LONGEST_THROTTLE_HOURS = 30 * 24
THROTTLE_HOURS = 4
COLUMNS = (
    "username",
    "tenant",
    "plan",
    "lane",
    "state",
    "accepted_today",
    "daily_limit",
    "abuse_score",
    "throttled_until",
)
_USERNAME = re.compile(r"[!-~]{1,256}")
_STAND_IN = "x"
Username = Annotated[str, Argument("The name that the sender logs in with.", typed_as="USERNAME")]


@dataclass(frozen=True, slots=True)
class WantedSender:
    """A sender as somebody asks for it."""

    username: Username
    domain: Annotated[str | None, Argument("The sender's domain; default: that of the username.")] = None
    tenant: Annotated[str | None, Argument("The tenant of a new domain; default: one of the domain's name.")] = None
    addresses: Annotated[
        Sequence[str],
        Argument(
            "An address or pattern, such as *@example.com, that may be written in From; repeatable. Default: the "
            "username, or all of the domain.",
            typed_as="--address",
        ),
    ] = ()
    plan: Annotated[str, Argument("standard, free (low priority), or team and enhanced_protection (high).")] = (
        DEFAULT_PLAN
    )
    weight: Annotated[float, Argument("The share against other senders of the domain.")] = 1.0
    daily_limit: Annotated[
        int | None, Argument("Messages per day; default: `outbound.daily_limit`.", typed_as="--limit")
    ] = None
    password: str | None = field(default=None, repr=False)

    def checked(self) -> NewSender:
        """Raises BadInput that names the field and the remedy."""
        own = canonical(self.username)
        username = own or self.username.strip().lower()
        if not _USERNAME.fullmatch(username) or username == SYSTEM:
            remedy = "use a mail address, or a name in ASCII without spaces"
            raise BadInput("username", f"{self.username[:200]!r} cannot be one", remedy)
        if self.domain is None and own is None:
            raise BadInput("domain", f"is missing, and {username} is no address", "give it, such as example.com")
        domain = checked_domain(self.domain or username.rpartition("@")[2])
        if self.plan not in PLANS:
            remedy = did_you_mean(self.plan, PLANS, f"use one of {', '.join(PLANS)}")
            raise BadInput("plan", f"there is no plan {self.plan[:200]!r}", remedy)
        if self.daily_limit is not None and self.daily_limit < 1:
            raise BadInput("limit", f"{self.daily_limit} is out of range", "use 1 or more")
        return NewSender(
            username,
            domain,
            tuple(checked_pattern(each) for each in self.addresses or (own or f"*@{domain}",)),
            None if self.tenant is None else checked_name(self.tenant),
            None if self.password is None else hash_password(self.password),
            self.plan,
            checked_weight(self.weight),
            self.daily_limit,
        )


@dataclass(frozen=True, slots=True)
class TenantSenders:
    """A tenant and its first senders."""

    tenant: TenantView
    senders: list[SenderView]


@OUTBOUND.operation(ADMINISTER, dialogue("sender add"))
async def add_sender(by: Caller, /, wanted: WantedSender) -> SenderView:
    """Add a sender, with domain and tenant if they are new."""
    new = await asyncio.to_thread(wanted.checked)
    await prepare(by.database)
    return await by.run(senders.add_sender(new, by.signature, by.clock()))


@OUTBOUND.operation(READ, command("sender list", *COLUMNS))
async def list_senders(
    database: Database,
    clock: Clock,
    /,
    tenant: Annotated[str | None, Argument("Only senders of this tenant.")] = None,
    throttled: Annotated[bool, Argument("Only senders with a throttle.")] = False,
    limit: Annotated[int, Argument("At most this many.", 1, 10_000)] = 1000,
) -> list[SenderView]:
    """List the senders by tenant, domain and name."""
    name = None if tenant is None else tenant.lower()
    return await database.run(senders.list_senders(clock(), name, throttled=throttled, most=limit))


@OUTBOUND.operation(READ, get("/outbound/tenants/{tenant}"))
async def load_tenant_senders(database: Database, clock: Clock, /, tenant: TenantName) -> TenantSenders:
    """Load one tenant, and its first senders."""
    found = await load_tenant(database, tenant)
    return TenantSenders(found, await list_senders(database, clock, found.name, limit=MOST_SHOWN))


@OUTBOUND.operation(READ, command("sender show {username}"))
async def load_sender(database: Database, clock: Clock, /, username: Username) -> SenderView:
    """Show one sender: limits, score, and why it is throttled."""
    return await database.run(senders.load_sender(username, clock()))


@OUTBOUND.operation(ADMINISTER, dialogue("sender password"))
async def set_password(by: Caller, /, username: Username, password: str) -> None:
    """Set a new password. The former one is no longer accepted."""
    password_hash = await asyncio.to_thread(hash_password, password)
    await by.run(senders.set_password(username, password_hash, by.signature, by.clock()))


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/senders/{username}/throttle"),
    form("/outbound/senders/throttle", "{username} is throttled for {hours} h."),
    command(
        "sender throttle {username}",
        outcome=("username", "throttled until {0.throttled_until:%Y-%m-%d %H:%M} UTC"),
    ),
    signs=True,
)
async def throttle_sender_for(
    by: Caller,
    /,
    username: Username,
    hours: Annotated[int, Argument("For how many hours.", 1, LONGEST_THROTTLE_HOURS, is_typed=False)] = THROTTLE_HOURS,
    until: Annotated[
        datetime | None,
        Argument(f"Until when, by default for {THROTTLE_HOURS} hours.", is_ahead=True),
    ] = None,
) -> SenderView:
    """Hold back a sender's mail until a time: nothing is accepted, and what waits is kept. Safe to repeat: the last
    one holds."""
    if not 1 <= hours <= LONGEST_THROTTLE_HOURS:
        raise BadInput("hours", f"{hours} is out of range", f"use 1 to {LONGEST_THROTTLE_HOURS}")
    throttle = Throttle(until or by.clock() + timedelta(hours=hours), by.signature.reason or "by the operator")
    await by.run(senders.throttle_sender(username, throttle, by.signature, by.clock()))
    return await load_sender(by.database, by.clock, username)


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/senders/{username}/release"),
    form("/outbound/senders/release"),
    command("sender release {username}"),
    signs=True,
)
async def release_sender(by: Caller, /, username: Username) -> Done:
    """End a throttle, and reset the counts. Safe to repeat."""
    ended = await by.run(senders.release_sender(username, by.signature, by.clock()))
    if ended is None:
        return Done(f"{username} was not throttled.")
    return Done(f"{username} is released: its mail goes on, and what was counted is forgotten.")


@OUTBOUND.operation(OPERATE, command("sender disable {username}"), signs=True)
async def disable_sender(by: Caller, /, username: Username) -> Done:
    """Accept no mail of a sender any more. Safe to repeat."""
    changed = await by.run(senders.disable_sender(username, by.signature, by.clock()))
    return Done(f"{username} is disabled." if changed else f"{username} was disabled before.")


@OUTBOUND.operation(OPERATE, command("sender enable {username}"))
async def enable_sender(by: Caller, /, username: Username) -> Done:
    """Accept mail of a sender again. Safe to repeat."""
    changed = await by.run(senders.enable_sender(username, by.signature, by.clock()))
    return Done(f"{username} is enabled." if changed else f"{username} was enabled before.")


def checked_pattern(pattern: str) -> str:
    """The canonical form of an address, or of a pattern with one `*` before the `@`. Raises BadInput for others."""
    local, _, domain = pattern.strip().rpartition("@")
    begin, star, end = local.partition("*")
    known = canonical(f"{begin}{_STAND_IN if star else ''}{end}@{domain}")
    if known is None or (star and ("*" in end or '"' in local)):
        remedy = "write one such as ada@example.com, *@example.com or ada+*@example.com"
        raise BadInput("address", f"{pattern[:200]!r} is no address and no pattern", remedy)
    return f"{local.lower()}@{known.rpartition('@')[2]}" if star else known
