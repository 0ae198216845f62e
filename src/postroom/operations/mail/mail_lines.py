"""Mail and events as a list for people: each with its tier, what was decided and why, and what became of it.

Every text may come from a stranger's mail. Nothing here is trusted; the page makes it safe to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal, get_args
from uuid import UUID

from postroom.core.access import READ
from postroom.core.actions.undo import why_not_undoable
from postroom.core.days import day_began
from postroom.core.errors import BadInput, TookTooLong
from postroom.core.mail.categories import chosen_categories
from postroom.core.mail.headers import sender_name
from postroom.core.mail.mail_head import MailHead
from postroom.core.mail.search import read_query
from postroom.core.queue.queues import EMAIL, GATEWAY
from postroom.core.short_ids import short_id
from postroom.core.views import Internal, Page, Untrusted
from postroom.operations.accounts.accounts import find_account
from postroom.operations.nouns import MAIL
from postroom.operations.operation import dialogue
from postroom.store.actions import decisions
from postroom.store.engine.cursors import read_cursor
from postroom.store.engine.database import Database
from postroom.store.intake import acceptance
from postroom.store.mail import mail_lists
from postroom.store.mail.mail_lists import MOST_COUNTED as MOST_COUNTED
from postroom.store.mail.mail_lists import ListedEvent, ListedPage, MailFilter, StateCounts
from postroom.store.mail.mail_views import MailRow
from postroom.store.mail.search import EARLIEST, NEWEST
from postroom.system.wall_clock import Clock, wall_clock
from postroom.words import actions as action_words
from postroom.words.states import EVENT_STATES, Mood, state_of
from postroom.words.tiers import tier_reason

CHANNELS = (acceptance.CHANNEL, decisions.CHANNEL)
"""Where changes of mail are announced: some arrived, was decided on or acted on."""
PAGE = 50
SPANS = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
LATELY = timedelta(days=7)
TODAY = "today"
TIERS = (*EMAIL.tiers, *GATEWAY.tiers)
KINDS: tuple[Literal["all", "mail", "event"], ...] = ("all", "mail", "event")
STATES = get_args(mail_lists.StateFilter)
BY = get_args(mail_lists.ByFilter)
Kind = Literal["mail", "event"]
MailTier = Literal["high_priority", "interactive", "default", "history"]


@dataclass(frozen=True, slots=True)
class MailQuestion:
    """The mail that somebody wants to see, as the filters say it. `before` is where a further page begins."""

    words: str | None = None
    kind: Literal["all", "mail", "event"] = "all"
    tier: str | None = None
    state: mail_lists.StateFilter | None = None
    by: mail_lists.ByFilter | None = None
    account: str | None = None
    since: datetime | None = None
    before: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class ShownMail(MailHead):
    """A message in a list, or by itself."""

    sender_name: Untrusted[str]
    id: UUID
    short_id: str
    account: str
    tier: str


@dataclass(frozen=True, slots=True)
class MailLine(ShownMail):
    """One message or event.

    `what` is what was decided, `by` who decided, `why` the reason; `state` and its mood say what became of it, and
    `outcome` says both in few words. `action_id` is the last action, `undo_id` the one that can be taken back now.
    """

    kind: Kind
    at: datetime
    tier_rule: str
    why_tier: str
    what: Untrusted[str]
    by: Untrusted[str]
    why: Untrusted[str]
    state: str
    mood: Internal[Mood]
    outcome: Internal[str]
    error: Untrusted[str]
    sent_at: Internal[datetime | None] = None
    labels: Internal[Sequence[str]] = ()
    action_id: Internal[UUID | None] = None
    undo_id: UUID | None = None
    is_in_inbox: bool = False
    excerpt: Untrusted[str] = ""
    """The place that a search found."""


@dataclass(frozen=True, slots=True)
class MailPage(Page[MailLine]):
    """The newest first. `looked_back_to` is how far a search has looked, if it did not look at everything; while
    `is_indexing`, older mail may be missing."""

    looked_back_to: datetime | None
    is_indexing: bool


def read_since(text: str, now: datetime, zone: tzinfo = UTC) -> datetime:
    """Read the beginning of a list: `today`, a span such as 24h, a day in the zone, or a time. Raise BadInput."""
    if text == TODAY:
        return day_began(now, zone)
    if (span := SPANS.get(text)) is not None:
        return now - span
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        remedy = f"choose one of {', '.join((TODAY, *SPANS))}, or a day such as 2026-11-01"
        raise BadInput("since", f"{text[:40]!r} is no time", remedy) from None


async def list_lines(database: Database, asked: MailQuestion, most: int = PAGE) -> MailPage:
    """List what fits, newest first. Raise NotFound, or BadInput for filters that make no sense together or cost too
    much.
    """
    try:
        return await _list(database, asked, most)
    except TookTooLong:
        raise BadInput("q", "takes too long to look for", "add a word, or a time such as after:2026-01-01") from None


async def _list(database: Database, asked: MailQuestion, most: int) -> MailPage:
    before = NEWEST if asked.before is None else read_cursor(asked.before)
    wanted = await _filter(database, asked)
    since = wanted.since
    if asked.words is not None:
        words = read_query(asked.words)
        unbounded = replace(wanted, since=EARLIEST)
        words = words if asked.since is None else replace(words, after=max(words.after or EARLIEST, since))
        page = await database.run(mail_lists.list_matching(words, database.dialect, unbounded, most, before))
    elif asked.kind == "event" or asked.tier in GATEWAY.tiers:
        page = await database.run(mail_lists.list_events(most, asked.tier, before, since))
    elif not wanted.is_narrow:
        page = await database.run(mail_lists.list_arrived(most, before, since, with_events=asked.kind == "all"))
    else:
        page = await database.run(mail_lists.list_mail(wanted, most, before))
    return _lines(page)


@MAIL.operation(READ, dialogue("mail list"))
async def list_by_date(
    database: Database, /, asked: MailQuestion, most: int = PAGE, *, only_kept: bool = False
) -> MailPage:
    """List mail of a tier, account, category or time that is in its mailbox, by its own date; with `only_kept`, mail
    with which nothing was done. Raise NotFound and BadInput.
    """
    return _lines(await database.run(mail_lists.list_by_date(await _filter(database, asked), most, only_kept)))


async def _filter(database: Database, asked: MailQuestion) -> MailFilter:
    account_id = None if asked.account is None else (await find_account(database, asked.account)).id
    _check(asked)
    return MailFilter(asked.tier, asked.state, asked.by, account_id, asked.since or EARLIEST, asked.category)


async def count_states(database: Database, clock: Clock = wall_clock) -> StateCounts:
    """Count what waits for a yes, and what failed or was undone in the last seven days."""
    return await database.run(mail_lists.count_states(clock() - LATELY))


async def count_hidden(database: Database, since: datetime) -> int:
    """Count the messages that the model and agents have hidden since then, up to MOST_COUNTED."""
    return await database.run(mail_lists.count_hidden(since))


def line_of_event(each: ListedEvent) -> MailLine:
    state, mood = EVENT_STATES.get(each.state, (each.state, ""))
    return MailLine(
        each.sender,
        each.subject if each.is_mail else each.text or each.kind or "",
        "",
        each.id,
        short_id(each.id),
        each.endpoint_identity,
        each.tier,
        "mail" if each.is_mail else "event",
        each.at,
        "",
        "",
        "" if each.is_mail else each.kind or each.channel,
        "",
        "",
        state if each.members is None else f"{state}, stands for {each.members}",
        mood,
        state,
        "" if each.reason is None or each.state == "done" else each.reason,
    )


def head_of(each: MailRow) -> tuple[str, str, str, UUID, str, str, str]:
    """The fields that a message has wherever it is shown, in their order."""
    return each.sender, each.subject, sender_name(each.headers), each.id, short_id(each.id), each.account, each.tier


def line_of_mail(each: MailRow) -> MailLine:
    state, mood = _state(each)
    return MailLine(
        *head_of(each),
        "mail",
        each.stored_at,
        *tier_reason(each),
        _what(each),
        _by(each),
        _why(each),
        state,
        mood,
        _outcome(each, state),
        each.action_error or "" if each.action_state == "failed" else "",
        each.sent_at,
        each.labels,
        each.action_id,
        each.action_id if _can_be_undone(each) else None,
        not each.is_gone and "INBOX" in each.label_ids,
        each.excerpt,
    )


def _check(asked: MailQuestion) -> None:
    if asked.category is not None:
        chosen_categories([asked.category])
    of_mail = asked.words or asked.state or asked.by or asked.account or asked.category
    if of_mail and (asked.kind == "event" or asked.tier in GATEWAY.tiers):
        remedy = "remove one of these filters"
        problem = "events have no account, category, decision or action, and are not searched"
        raise BadInput("kind", problem, remedy)
    if asked.words is not None and asked.state == "hidden":
        raise BadInput("state", "hidden mail is not searched by words", "remove one of these filters")
    if asked.kind != "event" and asked.tier is not None and asked.tier not in TIERS:
        raise BadInput("tier", f"{asked.tier[:40]!r} is none", f"choose one of: {', '.join(TIERS)}")


def _lines(page: ListedPage) -> MailPage:
    lines = [line_of_mail(each) if isinstance(each, MailRow) else line_of_event(each) for each in page.items]
    following = None if page.following is None else str(page.following)
    return MailPage(lines, following, page.looked_back_to, page.is_indexing)


def _state(each: MailRow) -> tuple[str, Mood]:
    if each.action_state is not None:
        return state_of(each.action_state, each.undone)
    if each.source is None:
        return "not decided yet", "busy"
    return ("refused, kept", "") if (each.safety or {}).get("verdict") == "refuse" else ("kept", "")


def _outcome(each: MailRow, state: str) -> str:
    if each.action_type is None:
        return state
    if each.action_state == "completed" and each.undone is None:
        return action_words.done(each.action_type, each.parameters or {})
    return f"{_what(each)}: {state}"


def _what(each: MailRow) -> str:
    if each.action_type is not None:
        return action_words.asked(each.action_type, each.parameters or {})
    if each.decided_type is None:
        return ""
    return action_words.asked(each.decided_type, each.decided_parameters or {})


def _by(each: MailRow) -> str:
    match each.actor:
        case "user":
            return "you"
        case "agent":
            return action_words.agent_named(each.agent, each.asked_by)
        case _:
            pass
    match each.source:
        case "deterministic":
            return f"rule “{each.rule_name or 'removed'}”"
        case "llm":
            return f"model {each.confidence:.2f}"
        case _:
            return ""


def _why(each: MailRow) -> str:
    asked_for = each.action_id is not None and not each.decided_action
    return (each.action_rationale if asked_for else each.rationale) or ""


def _can_be_undone(each: MailRow) -> bool:
    if each.action_type is None or each.action_state is None or each.undone in ("queued", "executing", "completed"):
        return False
    return why_not_undoable(each.action_type, each.action_state, each.undo_hint) is None
