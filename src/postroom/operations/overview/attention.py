"""The things that need a person now, each with the page that solves it. The most pressing comes first."""

from dataclasses import dataclass
from typing import Literal

from postroom.core.mail.account_repair import act_command
from postroom.core.mail.providers import facts_of
from postroom.core.outbound.delivery_health import DeliveryHealth
from postroom.core.views import Internal, Untrusted
from postroom.operations.accounts.account_status import AccountLine
from postroom.operations.mail.mail_lines import count_states
from postroom.operations.outbound.outbound_health import outbound_health
from postroom.operations.rules.proposals import list_proposals
from postroom.operations.rules.rules import list_unconfirmed
from postroom.settings.outbound import OutboundSettings
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from postroom.system.wall_clock import Clock, wall_clock
from postroom.words.outbound import trouble_in_words

MOST_COUNTED = 1_000

Need = Literal[
    "failed_actions",
    "failed_jobs",
    "consent",
    "consent_ends",
    "password",
    "repair",
    "not_acting",
    "not_ingested",
    "unconfirmed_rules",
    "proposals",
    "no_account",
    "outgoing",
]


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that needs a person."""

    need: Need
    count: int
    about: str = ""
    """The account, where it is about one."""
    detail: Untrusted[str] = ""
    command: Internal[str] = ""
    """The command that solves it, where no page does."""
    page: Internal[str] = ""
    """The page on which its mailbox is connected, where it has to be connected again."""


async def needs_attention(
    database: Database,
    accounts: list[AccountLine],
    clock: Clock = wall_clock,
    outbound: OutboundSettings | None = None,
) -> list[Attention]:
    """Return what needs a person, beside the actions that wait for a yes. Outgoing mail is judged with its settings."""
    failed = (await count_states(database, clock)).failed
    broken = await database.run(jobs.count_failed_jobs(MOST_COUNTED))
    unconfirmed = len(await list_unconfirmed(database))
    proposals = len(await list_proposals(database, "open", MOST_COUNTED))
    found = [
        *(each for account in accounts for each in _of_account(account)),
        Attention("failed_actions", failed),
        Attention("failed_jobs", broken),
        Attention("unconfirmed_rules", unconfirmed, command="postroom rules confirm"),
        Attention("proposals", proposals),
    ]
    if outbound is not None:
        found += _of_outgoing(await outbound_health(database, outbound, clock()))
    if not accounts:
        found.append(Attention("no_account", 1, command="postroom account add imap"))
    return [each for each in found if each.count]


def _of_outgoing(health: DeliveryHealth) -> list[Attention]:
    """The worst trouble. What is held back or paused is so on purpose."""
    worst = [each for each in health.troubles if each.kind not in ("held", "paused")][:1]
    return [Attention("outgoing", 1, "", trouble_in_words(each)[0]) for each in worst]


def _of_account(account: AccountLine) -> list[Attention]:
    found: list[Attention] = []
    if (need := _need_of(account)) is not None:
        detail = account.reason or account.trouble or ""
        page = facts_of(account.provider).page
        found.append(Attention(need, 1, account.email, detail, account.command or "", page))
    if account.acts_from is None and account.state == "active":
        found.append(Attention("not_acting", 1, account.email, "", act_command(account.email)))
    lost = account.refused + account.set_aside
    if lost:
        found.append(Attention("not_ingested", lost, account.email, "", account.retry or ""))
    return found


def _need_of(account: AccountLine) -> Need | None:
    """What its owner has to do so that the mailbox can be opened; None if it can."""
    if account.state == "needs_consent":
        return "repair" if account.remedy else account.sign_in
    return None if account.dies_at is None else "consent_ends"
