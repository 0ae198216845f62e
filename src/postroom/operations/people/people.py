"""People who may sign in to the pages: add, list and remove them, change their roles, end their sessions."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

from postroom.core.access import ADMINISTER, OWN_AGAIN
from postroom.core.counted import counted
from postroom.core.sign_in.names import person_name
from postroom.core.sign_in.session_times import LINK_LIVES
from postroom.core.views import Done, Internal
from postroom.core.visitors import PersonRole
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, Command, command, delete, flow, form, get, post
from postroom.operations.people.pages_address import link_address
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import people, sessions, sign_in_links
from postroom.store.people.people import PersonView
from postroom.store.people.sessions import SessionView
from postroom.store.people.sign_in_links import NewLink
from postroom.system.wall_clock import Clock, wall_clock

SECRET_BYTES = 32
Name = Annotated[str, Argument("The name with which they sign in.")]
NewRole = Annotated[
    PersonRole, Argument("viewer (reads), operator (also acts) or admin (also changes people and settings).")
]
BY_HAND = "Give it to them by a safe way: it works once, until tomorrow at this time."


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


@dataclass(frozen=True, slots=True)
class LinkAnswer:
    """The one-time link with which they choose a passkey or a password. It is shown once and stored nowhere."""

    name: Internal[str]
    link: str
    ends_at: datetime

    @property
    def row(self) -> Mapping[str, object]:
        return {"name": self.name, "sign_in_url": self.link, "expires_at": self.ends_at}


def _link_command(words: str) -> Command:
    return command(words, line="{sign_in_url}", row=attrgetter("row"), notes=lambda _answer: [BY_HAND])


@SETTINGS.operation(
    OWN_AGAIN, post("/settings/people", status=201), flow("/settings/people"), _link_command("person add {name}")
)
async def add_person(by: Caller, settings: Settings, /, name: Name, role: NewRole = "viewer") -> LinkAnswer:
    """Add somebody, and make a one-time link with which they choose a passkey or a password."""
    await prepare(by.database)
    made = new_link(by.clock())
    await by.run(people.add_person(new_id(), person_name(name), role, made.link, by.signature, by.clock()))
    return LinkAnswer(name, link_address(settings, made.secret), made.link.expires_at)


@SETTINGS.operation(
    OWN_AGAIN,
    post("/settings/people/{name}/link", status=201),
    flow("/settings/people/{name}/link"),
    _link_command("person link {name}"),
)
async def make_link(by: Caller, settings: Settings, /, name: Name) -> LinkAnswer:
    """Make a new one-time link for somebody who is locked out. Earlier links of theirs end. Using it turns their codes
    off and signs them out elsewhere."""
    made = new_link(by.clock())
    await by.run(sign_in_links.add_link(person_name(name), made.link, by.signature, by.clock()))
    return LinkAnswer(name, link_address(settings, made.secret), made.link.expires_at)


@SETTINGS.operation(
    ADMINISTER,
    get("/settings/people"),
    command(
        "person list", "name", "role", "has_password", "has_codes", "passkeys", "sessions", "last_seen_at", "created_at"
    ),
)
async def list_people(database: Database, clock: Clock = wall_clock, /) -> list[PersonView]:
    """List the people who may sign in, with their roles and how they can sign in."""
    return await database.run(people.list_people(clock()))


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """False if nothing had to be changed."""

    name: Internal[str]
    role: Internal[PersonRole]
    changed: bool

    @property
    def result(self) -> str:
        return f"is {self.role} now" if self.changed else f"was {self.role} before"


def _describe_role(found: ChangedAnswer, _given: Mapping[str, Any]) -> str:
    told = f"is {found.role} from the next click on" if found.changed else f"was {found.role} already"
    return f"{found.name} {told}."


@SETTINGS.operation(
    OWN_AGAIN,
    post("/settings/people/{name}/role"),
    form("/settings/people/{name}/role", _describe_role),
    command("person role {name} {role}", outcome=("name", "{0.result}")),
)
async def change_role(by: Caller, /, name: Name, role: NewRole) -> ChangedAnswer:
    """Change what somebody may do, from their next click on. Safe to repeat."""
    changed = await by.run(people.change_role(person_name(name), role, by.signature, by.clock()))
    return ChangedAnswer(name, role, changed)


@SETTINGS.operation(
    OWN_AGAIN,
    delete("/settings/people/{name}"),
    form("/settings/people/{name}/remove", "{name} is removed and signed out everywhere."),
    command("person remove {name}"),
)
async def remove_person(by: Caller, /, name: Name) -> Done:
    """Remove somebody, and sign them out everywhere. What they did stays in the audit log."""
    await by.run(people.remove_person(person_name(name), by.signature, by.clock()))
    return Done("The person is removed and signed out everywhere.")


@SETTINGS.operation(
    ADMINISTER,
    command(
        "person sessions {name}",
        "id",
        "name",
        "browser",
        "address",
        "created_at",
        "last_seen_at",
        "idle_ends_at",
        "ends_at",
    ),
)
async def list_sessions(
    database: Database,
    clock: Clock = wall_clock,
    /,
    name: Annotated[str | None, Argument("Only the sessions of this person.")] = None,
) -> list[SessionView]:
    """List where people are signed in, the last used first."""
    chosen = None if name is None else person_name(name)
    return await database.run(sessions.list_sessions(chosen, clock()))


@SETTINGS.operation(OWN_AGAIN, command("person sign-out {name}"))
async def sign_out(by: Caller, /, name: Name) -> Done:
    """Sign somebody out everywhere. Safe to repeat."""
    ended = await by.run(sessions.end_sessions(person_name(name), None, by.signature, by.clock()))
    return Done(f"{counted(ended, 'session')} ended.")
