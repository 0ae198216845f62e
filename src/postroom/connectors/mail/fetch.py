"""Reads messages by their ids, a batch at a time; for each, what came of it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.gmail.calls import Format
from postroom.gmail.client import PARTS, GmailClient
from postroom.gmail.errors import AnswerTooLarge, BadAnswer, GmailError, MessageNotFound, NotFromGmail, Unreachable
from postroom.gmail.resources import Message

CHUNK = PARTS


class FetchedMessage(NamedTuple):
    """A message; `problem` says why it did not come in the usual form."""

    message: Message
    problem: str | None = None


@dataclass(slots=True)
class FetchResult:
    """`gone` was deleted meanwhile, `unreadable` makes no sense in any form, `left` may go better another time."""

    read: list[FetchedMessage] = field(default_factory=list[FetchedMessage])
    gone: list[str] = field(default_factory=list[str])
    unreadable: dict[str, GmailError] = field(default_factory=dict[str, GmailError])
    left: dict[str, GmailError] = field(default_factory=dict[str, GmailError])


async def fetch(client: GmailClient, ids: Sequence[str]) -> AsyncGenerator[FetchResult]:
    """All of them, request by request: what one has brought comes before the next is made.

    An error of a whole request is raised. But a connection may break once: to begin the round anew would cost more.
    """
    left, is_broken = dict.fromkeys(ids), False
    while left:
        wanted = list(left)
        try:
            async with aclosing(client.message_batches(wanted)) as batches:
                async for outcomes in batches:
                    fetched, is_broken = FetchResult(), False
                    for place, outcome in outcomes.items():
                        del left[wanted[place]]
                        await _sort(client, wanted[place], outcome, fetched)
                    yield fetched
        except Unreachable:
            if is_broken:
                raise
            is_broken = True


async def _sort(client: GmailClient, id: str, outcome: Message | GmailError, fetched: FetchResult) -> None:
    match outcome:
        case Message():
            fetched.read.append(FetchedMessage(outcome))
        case MessageNotFound():
            fetched.gone.append(id)
        case BadAnswer() if not isinstance(outcome, NotFromGmail):
            await _fetch_otherwise(client, id, outcome, fetched)
        case _:
            fetched.left[id] = outcome


async def _fetch_otherwise(client: GmailClient, id: str, error: BadAnswer, fetched: FetchResult) -> None:
    """What Gmail's parts do not tell, the raw message may; of one that is too large, the headers have to do."""
    problem = f"Gmail's parts of it could not be read ({type(error).__name__})"
    forms: tuple[Format, ...] = ("metadata",) if isinstance(error, AnswerTooLarge) else ("raw", "metadata")
    for form in forms:
        try:
            fetched.read.append(FetchedMessage(await client.get_message(id, form), problem))
            return
        except MessageNotFound:
            fetched.gone.append(id)
            return
        except NotFromGmail as trouble:
            fetched.left[id] = trouble
            return
        except BadAnswer as again:
            error = again
        except GmailError as trouble:
            fetched.left[id] = trouble
            return
    fetched.unreadable[id] = error
