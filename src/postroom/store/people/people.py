"""People who sign in to the pages: their roles, passwords, codes and passkeys.

Of a password only a slow hash is stored. The secret of a person's codes (TOTP) is sealed. Every change is audited.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import Conflict, NotFound
from postroom.core.visitors import PersonRole
from postroom.store.accounts.secret_keys import using_key
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.store.people.sessions import aging_sessions_of, ending_sessions_of
from postroom.store.people.sign_in_links import NewLink, adding_link
from postroom.vault.sealing import Sealed

CODES = "totp"
"""The field under which the secret of a person's codes is sealed."""


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person as they are listed, without anything secret."""

    id: UUID
    name: str
    role: PersonRole
    has_password: bool
    has_codes: bool
    passkeys: int
    sessions: int
    last_seen_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Person:
    """A person with all that is needed to check who they are. `totp_step` is that of the last code that was used."""

    id: UUID
    name: str
    role: PersonRole
    password_hash: str | None = field(repr=False)
    codes: Sealed | None = field(repr=False)
    totp_step: int = 0


class NewPasskey(NamedTuple):
    """A passkey that a browser has made. `host` is the name of the site for which it works."""

    id: UUID
    credential_id: str
    public_key: str
    sign_count: int
    host: str
    name: str


@dataclass(frozen=True, slots=True)
class PasskeyView:
    """A passkey as it is listed."""

    id: UUID
    credential_id: str = field(repr=False)
    host: str
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class KnownPasskey:
    """A passkey with the key that proves it, and whose it is."""

    id: UUID
    person_id: UUID
    person: str
    role: PersonRole
    public_key: str = field(repr=False)
    sign_count: int


@transaction
def add_person(id: UUID, name: str, role: PersonRole, link: NewLink, signed: Signature, now: datetime) -> Script[None]:
    """Add somebody, with the link by which they choose a passkey or a password."""
    yield from adding_person(id, name, role, signed, now)
    yield from adding_link(link, id, now)


def adding_person(id: UUID, name: str, role: PersonRole, signed: Signature, now: datetime) -> Script[None]:
    """Part of a transaction."""
    if not (yield sql("insert_person", id, name, role, now)):
        raise Conflict("name", f"there is already somebody called {name}", "choose another name")
    yield from auditing(signed.under("person.add", "person", str(id), after={"name": name, "role": role}), now)


@query
def list_people(now: datetime) -> Script[list[PersonView]]:
    """Everybody, by name."""
    return read_rows(PersonView, (yield sql("select_people", now)))


@query
def has_people() -> Script[bool]:
    """Whether there is anybody who could sign in."""
    return bool((yield sql("count_people"))[0][0])


@query
def find_person(name: str) -> Script[Person | None]:
    return (yield from _reading(None, name))


@query
def load_person(id: UUID) -> Script[Person]:
    if (person := (yield from _reading(id, None))) is None:
        raise NotFound("this person was removed")
    return person


@transaction
def change_role(name: str, role: PersonRole, signed: Signature, now: datetime) -> Script[bool]:
    """Change what somebody may do, from their next request on; False if nothing changed."""
    person = yield from _person_named(name)
    if person.role == role:
        return False
    if role != "admin":
        yield from _leaving_an_admin(person)
    yield sql("set_person_role", person.id, role, now)
    yield from aging_sessions_of(person.id)
    states = {"before": {"role": person.role}, "after": {"role": role}}
    yield from auditing(signed.under("person.role", "person", str(person.id), **states), now)
    return True


@transaction
def remove_person(name: str, signed: Signature, now: datetime) -> Script[None]:
    """Remove somebody with their passkeys, links and sessions. The audit log keeps what they did."""
    person = yield from _person_named(name)
    if (yield sql("count_people"))[0][0] > 1:
        yield from _leaving_an_admin(person)
    yield sql("delete_person", person.id)
    before = {"name": person.name, "role": person.role}
    yield from auditing(signed.under("person.remove", "person", str(person.id), before=before), now)


@transaction
def set_person_password(
    id: UUID, password_hash: str, but_session: UUID | None, signed: Signature, now: datetime
) -> Script[None]:
    """Replace the password and end the person's other sessions."""
    yield sql("set_person_password", id, password_hash, now)
    yield from ending_sessions_of(id, but_session)
    yield from auditing(signed.under("person.password", "person", str(id)), now)


@transaction
def turn_on_codes(id: UUID, sealed: Sealed, step: int, signed: Signature, now: datetime) -> Script[None]:
    """Ask for a code of the person's app besides their password. `step` is that of the code which proved the app."""
    yield from using_key(sealed.key_id, now)
    yield sql("set_person_totp", id, *sealed, step, now)
    yield from auditing(signed.under("person.codes_on", "person", str(id)), now)


@transaction
def turn_off_codes(id: UUID, signed: Signature, now: datetime) -> Script[bool]:
    """Ask for no more codes; False if none were asked for."""
    if not (yield sql("clear_person_totp", id, now)):
        return False
    yield from auditing(signed.under("person.codes_off", "person", str(id)), now)
    return True


@transaction
def use_code(id: UUID, step: int) -> Script[bool]:
    """Use up the code of this step and all before it; False if that has been done, so that a code works once."""
    return bool((yield sql("use_totp_step", id, step)))


@transaction
def add_passkey(person_id: UUID, passkey: NewPasskey, signed: Signature, now: datetime) -> Script[None]:
    id, *rest = passkey
    if not (yield sql("insert_passkey", id, person_id, *rest, now)):
        raise Conflict("passkey", "is known already", "use it to sign in, or choose another device")
    after = {"passkey": str(id), "name": passkey.name, "host": passkey.host}
    yield from auditing(signed.under("person.passkey_add", "person", str(person_id), after=after), now)


@transaction
def remove_passkey(person_id: UUID, id: UUID, signed: Signature, now: datetime) -> Script[None]:
    """Forget a passkey. Raises Conflict if nothing would be left to sign in with."""
    person = yield from load_person.script(person_id)
    rows = yield sql("delete_passkey", id, person_id)
    if not rows:
        raise NotFound("there is no such passkey; open the page again")
    if person.password_hash is None and not (yield sql("select_passkeys", person_id)):
        raise Conflict("passkey", "is the only way in that you have", "add another one or a password first")
    before = {"passkey": str(id), "name": rows[0][0]}
    yield from auditing(signed.under("person.passkey_remove", "person", str(person_id), before=before), now)


@query
def list_passkeys(person_id: UUID) -> Script[list[PasskeyView]]:
    """The passkeys of a person, oldest first."""
    return read_rows(PasskeyView, (yield sql("select_passkeys", person_id)))


@query
def find_passkey(credential_id: str) -> Script[KnownPasskey | None]:
    return read_first(KnownPasskey, (yield sql("select_passkey_by_credential", credential_id)))


def _reading(id: UUID | None, name: str | None) -> Script[Person | None]:
    return read_first(Person, (yield sql("select_person", id, name)))


def _person_named(name: str) -> Script[Person]:
    if (person := (yield from _reading(None, name))) is None:
        raise NotFound(f"there is no person {name}; `postroom person list` lists all")
    return person


def _leaving_an_admin(person: Person) -> Script[None]:
    """Raise Conflict if this is the only admin. Locks them all, so that two cannot leave at the same time."""
    admins = yield sql("lock_admins")
    if person.role == "admin" and len(admins) < 2:
        remedy = "make somebody else an admin first, with `postroom person role NAME admin`"
        raise Conflict("name", f"{person.name} is the only admin", remedy)
