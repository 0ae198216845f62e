"""One-time links: with one, the first person makes themselves known, and somebody who is locked out chooses anew."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import NotFound, SignInRefused
from postroom.core.visitors import PersonRole
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.people.audit import Signature, auditing


class NewLink(NamedTuple):
    """A link to be stored: only the hash of its secret."""

    id: UUID
    secret_sha256: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class OpenLink:
    """A link that still works. Without a person it makes the first one, whose id is that of the link."""

    id: UUID
    person_id: UUID | None
    name: str | None
    role: PersonRole | None


@transaction
def offer_first_link(link: NewLink, now: datetime) -> Script[bool]:
    """Store a link for the first person; False, and nothing is stored, if there is somebody already."""
    if (yield sql("count_people"))[0][0]:
        return False
    yield sql("delete_ended_links", now)
    yield from adding_link(link, None, now)
    return True


@transaction
def add_link(name: str, link: NewLink, signed: Signature, now: datetime) -> Script[None]:
    """Store a link for somebody; earlier ones of theirs work no more."""
    for row in (yield sql("select_person", None, name)).by_name():
        person_id = as_uuid(row["id"])
        yield from adding_link(link, person_id, now)
        yield from auditing(signed.under("person.link", "person", str(person_id)), now)
        return
    raise NotFound(f"there is no person {name}; `postroom person list` lists all")


def adding_link(link: NewLink, person_id: UUID | None, now: datetime) -> Script[None]:
    """Part of a transaction."""
    if person_id is not None:
        yield sql("delete_other_links", str(person_id), link.id)
    yield sql("insert_sign_in_link", link.id, person_id, link.secret_sha256, link.expires_at, now)


@query
def find_link(secret_sha256: str, now: datetime) -> Script[OpenLink | None]:
    """The link with this secret, if it still works."""
    return read_first(OpenLink, (yield sql("select_sign_in_link", secret_sha256, now)))


def using_link(secret_sha256: str, now: datetime) -> Script[OpenLink]:
    """Part of a transaction: use up the link. Raises SignInRefused if it works no more.

    Using the link that makes the first person ends the others of this kind. Two processes that use two of them at the
    same time lock each other's link, and one of them is refused.
    """
    found = read_first(OpenLink, (yield sql("select_sign_in_link", secret_sha256, now)))
    if found is None or not (yield sql("use_sign_in_link", secret_sha256, now)):
        raise dead_link()
    yield sql("delete_other_links", None if found.person_id is None else str(found.person_id), found.id)
    if found.person_id is None and (yield sql("count_people"))[0][0]:
        raise dead_link()
    return found


def dead_link() -> SignInRefused:
    return SignInRefused("This link was used before, or is too old. Ask for a new one: `postroom person link NAME`.")
