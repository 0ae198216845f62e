"""Reads messages by their ids in batches, with an outcome for each."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from postroom.core.errors import MailboxError, MailboxUnreachable, MessageGone, UnreadableAnswer
from postroom.mailboxes.following.source import Form, MailSource, SourceMessage


@dataclass(slots=True)
class FetchResult:
    """`problems` say why some did not come in the usual form. `gone` was deleted meanwhile, `unreadable` cannot be
    parsed in any form, `left` may succeed later.
    """

    read: list[SourceMessage] = field(default_factory=list[SourceMessage])
    problems: dict[str, str] = field(default_factory=dict[str, str])
    gone: list[str] = field(default_factory=list[str])
    unreadable: dict[str, MailboxError] = field(default_factory=dict[str, MailboxError])
    left: dict[str, MailboxError] = field(default_factory=dict[str, MailboxError])


async def fetch(source: MailSource, ids: Sequence[str]) -> AsyncGenerator[FetchResult]:
    """Fetch all of them, request by request: each result is yielded before the next request is made.

    An error of a whole request is raised. But the connection may break once, since starting the round again would cost
    more.
    """
    left, is_broken = dict.fromkeys(ids), False
    while left:
        wanted = list(left)
        try:
            async with aclosing(source.message_batches(wanted)) as batches:
                async for outcomes in batches:
                    fetched, is_broken = FetchResult(), False
                    for place, outcome in outcomes.items():
                        del left[wanted[place]]
                        await _sort(source, wanted[place], outcome, fetched)
                    yield fetched
        except MailboxUnreachable:
            if is_broken:
                raise
            is_broken = True


async def _sort(source: MailSource, id: str, outcome: SourceMessage | MailboxError, fetched: FetchResult) -> None:
    match outcome:
        case MessageGone():
            fetched.gone.append(id)
        case UnreadableAnswer():
            await _fetch_otherwise(source, id, outcome, fetched)
        case MailboxError():
            fetched.left[id] = outcome
        case _:
            fetched.read.append(outcome)


async def _fetch_otherwise(source: MailSource, id: str, error: UnreadableAnswer, fetched: FetchResult) -> None:
    """Fetch it in another form: raw if the provider's parts cannot be parsed; only headers if it is too large."""
    problem = f"its parts could not be parsed ({type(error).__name__})"
    forms: tuple[Form, ...] = ("metadata",) if error.is_too_large else ("raw", "metadata")
    for form in forms:
        try:
            fetched.read.append(await source.get_message(id, form))
            fetched.problems[id] = problem
            return
        except MessageGone:
            fetched.gone.append(id)
            return
        except UnreadableAnswer as again:
            error = again
        except MailboxError as trouble:
            fetched.left[id] = trouble
            return
    fetched.unreadable[id] = error
