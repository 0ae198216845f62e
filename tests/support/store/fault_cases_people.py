"""For each writing verb of people, links and sessions: a database in which it has something to do."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.visitors import PersonRole
from postroom.operations.people.people import hashed, new_link
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.people import people, redeeming, sessions, sign_in_links
from postroom.store.people.people import NewPasskey
from postroom.store.people.sessions import KeptSession, NewSession
from postroom.vault.sealing import Sealed
from support.clocks import ManualClock
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA"
SEALED = Sealed("key-1", "c2VhbGVk")


@dataclass
class Opened:
    """A person with an open session, and the texts whose hashes are stored."""

    person_id: UUID
    session: KeptSession
    key: str
    secret: str


def new_session(clock: ManualClock, key: str = "key", secret: str = "secret") -> NewSession:
    now = clock()
    ends = (now + timedelta(minutes=30), now + timedelta(hours=12))
    return NewSession(new_id(), hashed(key), hashed(secret), "Firefox on Linux", "192.0.2.0/24", *ends)


def new_passkey(credential: str = "credential") -> NewPasskey:
    return NewPasskey(new_id(), credential, "cHVibGlj", 0, "localhost", "laptop")


async def added_person(
    database: Database, clock: ManualClock, name: str = "mara", role: PersonRole = "admin"
) -> tuple[UUID, str]:
    """A person, and the secret of their link."""
    id, made = new_id(), new_link(clock())
    await database.run(people.add_person(id, name, role, made.link, signed(), clock()))
    return id, made.secret


async def opened(database: Database, clock: ManualClock, name: str = "mara", role: PersonRole = "admin") -> Opened:
    """A person with a session, whose key and secret are made of the name."""
    id, _ = await added_person(database, clock, name, role)
    key, secret = f"key of {name}", f"secret of {name}"
    session = new_session(clock, key, secret)
    await database.run(sessions.open_session(id, session, "password", signed(), clock()))
    kept = await database.run(sessions.find_session(hashed(key), clock()))
    assert kept is not None
    return Opened(id, kept, key, secret)


async def _opened(setup: JobSetup) -> Opened:
    return await opened(setup.database, setup.clock)


async def add_person(setup: JobSetup) -> Transaction[Any]:
    link = new_link(setup.clock()).link
    return people.add_person(new_id(), "mara", "admin", link, signed(), setup.clock())


async def change_role(setup: JobSetup) -> Transaction[Any]:
    await opened(setup.database, setup.clock, "mara")
    await opened(setup.database, setup.clock, "nils")
    return people.change_role("nils", "viewer", signed(), setup.clock())


async def remove_person(setup: JobSetup) -> Transaction[Any]:
    await opened(setup.database, setup.clock, "mara")
    await opened(setup.database, setup.clock, "nils")
    return people.remove_person("nils", signed(), setup.clock())


async def set_person_password(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return people.set_person_password(mara.person_id, HASH, None, signed(), setup.clock())


async def turn_on_codes(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return people.turn_on_codes(mara.person_id, SEALED, 7, signed(), setup.clock())


async def turn_off_codes(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    await setup.database.run(people.turn_on_codes(mara.person_id, SEALED, 7, signed(), setup.clock()))
    return people.turn_off_codes(mara.person_id, signed(), setup.clock())


async def use_code(setup: JobSetup) -> Transaction[Any]:
    return people.use_code((await _opened(setup)).person_id, 8)


async def add_passkey(setup: JobSetup) -> Transaction[Any]:
    return people.add_passkey((await _opened(setup)).person_id, new_passkey(), signed(), setup.clock())


async def remove_passkey(setup: JobSetup) -> Transaction[Any]:
    mara, first, second = await _opened(setup), new_passkey("first"), new_passkey("second")
    for each in (first, second):
        await setup.database.run(people.add_passkey(mara.person_id, each, signed(), setup.clock()))
    return people.remove_passkey(mara.person_id, first.id, signed(), setup.clock())


async def offer_first_link(setup: JobSetup) -> Transaction[Any]:
    return sign_in_links.offer_first_link(new_link(setup.clock()).link, setup.clock())


async def add_link(setup: JobSetup) -> Transaction[Any]:
    await _opened(setup)
    return sign_in_links.add_link("mara", new_link(setup.clock()).link, signed(), setup.clock())


async def redeem_link(setup: JobSetup) -> Transaction[Any]:
    """A recovery by passkey: it runs every statement but those that make a person or set a password."""
    id, secret = await added_person(setup.database, setup.clock)
    await setup.database.run(people.turn_on_codes(id, SEALED, 7, signed(), setup.clock()))
    challenge = (hashed("challenge"), setup.clock() + timedelta(minutes=5))
    entries = (new_id(), new_id(), new_id(), new_id())
    session = new_session(setup.clock)
    return redeeming.redeem_link(hashed(secret), "mara", new_passkey(), challenge, session, entries, setup.clock())


async def open_session(setup: JobSetup) -> Transaction[Any]:
    id, _ = await added_person(setup.database, setup.clock)
    return sessions.open_session(id, new_session(setup.clock), "password", signed(), setup.clock())


async def note_session_use(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return sessions.note_session_use(mara.session.id, setup.clock() + timedelta(hours=1), setup.clock())


async def rotate_session(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return sessions.rotate_session(
        mara.session.id, hashed(mara.secret), hashed(mara.secret), hashed("new"), setup.clock()
    )


async def end_previous_secret(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    await setup.database.run(
        sessions.rotate_session(mara.session.id, hashed(mara.secret), hashed(mara.secret), hashed("new"), setup.clock())
    )
    return sessions.end_previous_secret(mara.session.id, hashed("new"), setup.clock())


async def prove_session(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return sessions.prove_session(mara.session, "password", signed(), setup.clock())


async def end_session(setup: JobSetup) -> Transaction[Any]:
    mara = await _opened(setup)
    return sessions.end_session(mara.session.id, mara.person_id, signed(), setup.clock())


async def end_sessions(setup: JobSetup) -> Transaction[Any]:
    await _opened(setup)
    return sessions.end_sessions("mara", None, signed(), setup.clock())


async def challenge_key(setup: JobSetup) -> Transaction[Any]:
    return sessions.challenge_key("candidate", setup.clock())


async def use_challenge(setup: JobSetup) -> Transaction[Any]:
    return sessions.use_challenge(hashed("challenge"), setup.clock() + timedelta(minutes=5))


async def use_passkey(setup: JobSetup) -> Transaction[Any]:
    mara, passkey = await _opened(setup), new_passkey()
    await setup.database.run(people.add_passkey(mara.person_id, passkey, signed(), setup.clock()))
    ends = setup.clock() + timedelta(minutes=5)
    return sessions.use_passkey(passkey.id, 1, hashed("challenge"), ends, setup.clock())


CASES: list[Case] = [
    add_person,
    change_role,
    remove_person,
    set_person_password,
    turn_on_codes,
    turn_off_codes,
    use_code,
    add_passkey,
    remove_passkey,
    offer_first_link,
    add_link,
    redeem_link,
    open_session,
    note_session_use,
    rotate_session,
    end_previous_secret,
    prove_session,
    end_session,
    end_sessions,
    challenge_key,
    use_challenge,
    use_passkey,
]
