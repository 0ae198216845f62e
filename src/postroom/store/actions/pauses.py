"""The kill switch: during a pause nothing is changed in any mailbox, or in that of one account.

It is checked where work begins, and again when a request is about to be sent (`mailbox_writers`). Jobs that meet it
wait under its key without using up attempts, and resume when it ends. To pause and be sure that nothing more is sent,
use `pausing.stop`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor
from postroom.core.errors import Parked
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.jobs import PAUSE, unpark
from postroom.store.people.audit import TOKENS, Signature, auditing

CHANNEL = "pauses"
ALL = "all"
OUTGOING = "outgoing mail"
"""The kind of work that sends mail of senders."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause: its scope, why, by whom and since when. The scope is `all` or an account's id."""

    scope: str
    reason: str
    set_by: str
    since: datetime


@transaction
def pause(scope: str, reason: str, signed: Signature, now: datetime) -> Script[Pause]:
    """Start a pause: no new work begins. A person who sets it again gives a new reason; a token changes nothing of what
    a person has said."""
    yield from recalling(scope)
    if signed.is_token and (standing := (yield from _set_by_person(scope))) is not None:
        yield from auditing(signed.under("mutations.pause", "pause", scope, after={"reason": reason}), now)
        return standing
    rows = yield sql("insert_pause", scope, reason, signed.actor, now)
    yield from auditing(signed.under("mutations.pause", "pause", scope, after={"reason": reason}), now)
    return Pause(scope, reason, signed.actor, as_time(rows[0][0]))


def _set_by_person(scope: str) -> Script[Pause | None]:
    standing = (each for each in (yield from standing_pauses.script()) if each.scope == scope)
    return next((each for each in standing if not each.set_by.startswith(TOKENS)), None)


def recalling(scope: str) -> Script[None]:
    """Part of a transaction that forbids something: every process must ask again before it sends another request.

    It must run first, see `mailbox_writers`. `pausing.recalled` waits until all processes have.
    """
    yield sql("await_no_departure")
    yield sql("raise_pause_generation")
    yield Notify(CHANNEL, scope)


@transaction
def resume(scope: str, signed: Signature, now: datetime) -> Script[int | None]:
    """End the pause; return how many jobs resume, None if there was no pause. Raises Refused for a token."""
    signed.require_person("end a pause")
    if not (yield sql("delete_pause", scope)):
        return None
    yield sql("raise_pause_generation")
    released = yield from unpark.script(f"{PAUSE}{scope}", now)
    yield from auditing(signed.under("mutations.resume", "pause", scope, after={"released": released}), now)
    yield Notify(CHANNEL, scope)
    return released


class WaitingWork(NamedTuple):
    """Work of one kind and one cause that begins when a pause ends. Jobs that are no actions have no `actor`."""

    kind: str
    number: int
    actor: Actor | None = None
    agent: str | None = None


@query
def waiting_work(scope: str) -> Script[list[WaitingWork]]:
    """Everything that begins when this pause ends: actions, other changes to mailboxes, and outgoing mail."""
    found = read_rows(WaitingWork, (yield sql("select_waiting_actions", scope)))
    found += read_rows(WaitingWork, (yield sql("select_waiting_jobs", f"{PAUSE}{scope}")))
    if scope == ALL and (mails := (yield sql("count_waiting_mails"))[0][0]):
        found.append(WaitingWork(OUTGOING, mails))
    return found


@query
def is_paused(scope: str) -> Script[bool]:
    """Whether the pause of this scope stands."""
    return any(each.scope == scope for each in (yield from standing_pauses.script()))


@query
def standing_pauses() -> Script[list[Pause]]:
    return read_rows(Pause, (yield sql("select_pauses")))


def is_all_paused() -> Script[bool]:
    """Part of a transaction: whether everything is paused."""
    return bool((yield sql("select_pauses_of", "all")))


def standing_reason() -> Script[str | None]:
    """Part of a transaction: why everything is paused, if it is."""
    for _, reason in (yield sql("select_pauses_of", "all")):
        return f"Postroom is paused: {reason}"
    return None


@query
def check_paused(account_id: UUID) -> Script[None]:
    """Raise Parked during a pause: for a change that has no record of its own to begin."""
    for scope, reason in (yield sql("select_pauses_of", str(account_id))):
        raise Parked(f"{PAUSE}{scope}", f"Postroom is paused: {reason}; `postroom resume` continues")
