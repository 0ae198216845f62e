"""People who may sign in to the pages: add, list and remove them, change their roles, end their sessions."""

import hashlib
import secrets
from datetime import datetime
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.sign_in.names import person_name
from postroom.core.sign_in.session_times import LINK_LIVES
from postroom.core.visitors import PERSON_ROLES, PersonRole
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import people, sessions, sign_in_links
from postroom.store.people.people import PersonView
from postroom.store.people.sessions import SessionView
from postroom.store.people.sign_in_links import NewLink

__all__ = ["PersonView", "SessionView"]

SECRET_BYTES = 32


class LinkText(NamedTuple):
    """A new link, and its secret, which is shown once and stored nowhere."""

    link: NewLink
    secret: str


def new_link(now: datetime) -> LinkText:
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return LinkText(NewLink(new_id(), hashed(secret), now + LINK_LIVES), secret)


def hashed(secret: str) -> str:
    """The hash under which a random secret is stored. It cannot be guessed, so no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


async def offer_first_link(database: Database, clock: Clock = wall_clock) -> str | None:
    """Make the link with which the first person makes themselves known; None if there is somebody already."""
    link, secret = new_link(clock())
    return secret if await database.run(sign_in_links.offer_first_link(link, clock())) else None


async def add_person(by: Caller, name: str, role: str) -> LinkText:
    """Add somebody. Return the link with which they choose a passkey or a password."""
    await prepare(by.database)
    made = new_link(by.clock())
    chosen = role_named(role)
    await by.run(people.add_person(new_id(), person_name(name), chosen, made.link, by.signature, by.clock()))
    return made


async def link_for(by: Caller, name: str) -> LinkText:
    """Make a new link for somebody, such as after they have lost their phone. Earlier links of theirs end."""
    made = new_link(by.clock())
    await by.run(sign_in_links.add_link(person_name(name), made.link, by.signature, by.clock()))
    return made


async def list_people(database: Database, clock: Clock = wall_clock) -> list[PersonView]:
    """List everybody by name, without anything secret."""
    return await database.run(people.list_people(clock()))


async def change_role(by: Caller, name: str, role: str) -> bool:
    """Change what somebody may do, from their next request on. Return False if nothing changed."""
    return await by.run(people.change_role(person_name(name), role_named(role), by.signature, by.clock()))


async def remove_person(by: Caller, name: str) -> None:
    """Remove somebody, with their sessions. What they did stays in the audit log."""
    await by.run(people.remove_person(person_name(name), by.signature, by.clock()))


async def list_sessions(database: Database, name: str | None, clock: Clock = wall_clock) -> list[SessionView]:
    """List the sessions of one person or of all, the last used first."""
    chosen = None if name is None else person_name(name)
    return await database.run(sessions.list_sessions(chosen, clock()))


async def sign_out(by: Caller, name: str) -> int:
    """End every session of a person. Return how many there were."""
    return await by.run(sessions.end_sessions(person_name(name), None, by.signature, by.clock()))


def role_named(text: str) -> PersonRole:
    for role in PERSON_ROLES:
        if role == text:
            return role
    raise BadInput("role", f"there is no role {text!r}", f"use one of {', '.join(PERSON_ROLES)}")
