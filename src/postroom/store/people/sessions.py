"""Sessions of people who have signed in.

The cookie has a key and a secret. The hash of the key finds the row, that of the secret proves it, and the secret is
replaced now and then, so that a stolen one does not work for long. The key stays, so that the forms of open pages do.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import NotFound, SignInRefused
from postroom.core.sign_in.session_times import OLD_SECRET_LIVES
from postroom.core.visitors import PersonRole
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class NewSession(NamedTuple):
    """A session to be stored: only the hashes of its key and secret, and a part of where it came from."""

    id: UUID
    key_sha256: str
    secret_sha256: str
    browser: str
    address: str
    idle_ends_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session that has not ended, with the hashes that prove it, and whose it is."""

    id: UUID
    person_id: UUID
    name: str
    role: PersonRole
    secret_sha256: str = field(repr=False)
    previous_sha256: str | None = field(repr=False)
    previous_until: datetime | None
    created_at: datetime
    last_seen_at: datetime
    rotated_at: datetime
    proven_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as it is listed."""

    id: UUID
    name: str
    browser: str
    address: str
    created_at: datetime
    last_seen_at: datetime
    idle_ends_at: datetime
    ends_at: datetime


class CheckedPassword(NamedTuple):
    """The hash that a password was checked against, and whether a code was asked for besides."""

    password_hash: str
    with_code: bool


@transaction
def open_session(
    person_id: UUID,
    session: NewSession,
    by: str,
    signed: Signature,
    now: datetime,
    password: CheckedPassword | None = None,
) -> Script[None]:
    """Open a session for somebody who has proven who they are by password or passkey. Clears away what has ended.

    Checking a password takes a while. Raises SignInRefused if it was replaced meanwhile, since all sessions that were
    opened with the old one have been ended by then.
    """
    rows = yield sql("lock_ways_in", person_id)
    if not rows or password not in (None, (rows[0][0], bool(rows[0][1]))):
        raise SignInRefused("This person's ways in were changed at this moment. Sign in again.")
    yield from opening_session(person_id, session, by, signed, now)


def opening_session(person_id: UUID, session: NewSession, by: str, signed: Signature, now: datetime) -> Script[None]:
    """Part of a transaction."""
    id, *rest = session
    yield sql("insert_session", id, person_id, *rest, now)
    yield sql("delete_ended_sessions", now)
    yield sql("delete_ended_links", now)
    yield sql("delete_ended_challenges", now)
    after = {"session": str(id), "by": by, "browser": session.browser, "address": session.address}
    yield from auditing(signed.under("sign_in", "person", str(person_id), after=after), now)


@query
def find_session(key_sha256: str, now: datetime) -> Script[KeptSession | None]:
    """The session with this key, unless it has ended."""
    return read_first(KeptSession, (yield sql("select_session", key_sha256, now)))


@query
def list_sessions(name: str | None, now: datetime) -> Script[list[SessionView]]:
    """The sessions of one person or of all, the last used first."""
    return read_rows(SessionView, (yield sql("select_sessions", name, now)))


@transaction
def note_session_use(id: UUID, idle_ends_at: datetime, now: datetime) -> Script[bool]:
    """Put off the end of the session, since it is used; False if it is gone."""
    return bool((yield sql("note_session_use", id, idle_ends_at, now)))


@transaction
def rotate_session(id: UUID, seen_sha256: str, old_sha256: str, new_sha256: str, now: datetime) -> Script[bool]:
    """Replace the secret for who came with the old one; False if another request has done so.

    `seen_sha256` is the secret that was in use when this was decided.
    """
    return bool((yield sql("rotate_session", id, seen_sha256, old_sha256, new_sha256, now)))


@transaction
def end_previous_secret(id: UUID, secret_sha256: str, now: datetime) -> Script[bool]:
    """Accept the secret before this one only a little longer, since this one has arrived."""
    return bool((yield sql("end_previous_secret", id, secret_sha256, now + OLD_SECRET_LIVES)))


@transaction
def prove_session(session: KeptSession, by: str, signed: Signature, now: datetime) -> Script[bool]:
    """Note that its person has proven again who they are; False if the session is gone."""
    if not (yield sql("prove_session", session.id, now)):
        return False
    after = {"session": str(session.id), "by": by}
    yield from auditing(signed.under("sign_in.again", "person", str(session.person_id), after=after), now)
    return True


@transaction
def end_session(id: UUID, person_id: UUID | None, signed: Signature, now: datetime) -> Script[None]:
    """End one session, with `person_id` only if it is theirs."""
    if not (yield sql("delete_session", id, None if person_id is None else str(person_id))):
        raise NotFound("there is no such session, or it has ended")
    yield from auditing(signed.under("session.end", "session", str(id)), now)


@transaction
def end_sessions(name: str, but: UUID | None, signed: Signature, now: datetime) -> Script[int]:
    """End every session of a person, except `but`; return how many."""
    rows = yield sql("select_person", None, name)
    if not rows:
        raise NotFound(f"there is no person {name}; `postroom person list` lists all")
    person_id = as_uuid(next(rows.by_name())["id"])
    ended = yield from ending_sessions_of(person_id, but)
    if ended:
        yield from auditing(signed.under("session.end_all", "person", str(person_id), after={"ended": ended}), now)
    return ended


def ending_sessions_of(person_id: UUID, but: UUID | None = None) -> Script[int]:
    """Part of a transaction."""
    return len((yield sql("delete_sessions_of", person_id, None if but is None else str(but))))


def aging_sessions_of(person_id: UUID) -> Script[None]:
    """Part of a transaction: have the secrets of the person's sessions replaced at their next request."""
    yield sql("age_sessions_of", person_id, LONG_AGO)


@transaction
def challenge_key(candidate: str, now: datetime) -> Script[str]:
    """The key that signs challenges for passkeys, the same for all processes: the first that was given."""
    yield sql("insert_challenge_key", candidate, now)
    return (yield sql("select_challenge_key"))[0][0]


@transaction
def use_challenge(challenge_sha256: str, expires_at: datetime) -> Script[bool]:
    """Use up a challenge; False if it was used before."""
    return bool((yield sql("insert_used_challenge", challenge_sha256, expires_at)))


@transaction
def use_passkey(
    passkey_id: UUID, sign_count: int, challenge_sha256: str, expires_at: datetime, now: datetime
) -> Script[bool]:
    """Use up the challenge that a passkey has signed, and note its use; False if the answer was used before."""
    if not (yield sql("insert_used_challenge", challenge_sha256, expires_at)):
        return False
    return bool((yield sql("note_passkey_use", passkey_id, sign_count, now)))
