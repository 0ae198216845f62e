"""The use of a one-time link: its person, made if there is none yet, gets a password or a passkey, and a session."""

from datetime import datetime
from uuid import UUID

from postroom.core.visitors import PersonRole
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.people.audit import Signature
from postroom.store.people.people import NewPasskey, add_passkey, adding_person, set_person_password, turn_off_codes
from postroom.store.people.sessions import NewSession, ending_sessions_of, opening_session
from postroom.store.people.sign_in_links import dead_link, using_link

FIRST_ROLE: PersonRole = "admin"


@transaction
def redeem_link(
    secret_sha256: str,
    name: str,
    chosen: str | NewPasskey,
    challenge: tuple[str, datetime] | None,
    session: NewSession,
    entries: tuple[UUID, UUID, UUID, UUID],
    now: datetime,
) -> Script[None]:
    """Use up the link for the hash of a new password, or for a passkey that has answered the `challenge`.

    The password before, its codes and other sessions end: who needs a link may have lost an app, or a device.
    `name` is that of the first person; otherwise it must be the name of the link's person. `entries` are the ids of the
    audit entries.
    """
    link = yield from using_link(secret_sha256, now)
    person_id, role = link.person_id or link.id, link.role or FIRST_ROLE
    first, second, third, fourth = (Signature(id, f"person:{name}", role, "by one-time link") for id in entries)
    if link.person_id is None:
        yield from adding_person(person_id, name, role, first, now)
    elif link.name != name:
        raise dead_link()
    yield from turn_off_codes.script(person_id, second, now)
    if isinstance(chosen, str):
        yield from set_person_password.script(person_id, chosen, None, third, now)
    else:
        if challenge is None or not (yield sql("insert_used_challenge", *challenge)):
            raise dead_link()
        # Without its codes, an old password would be worth less than before.
        yield sql("clear_person_password", person_id, now)
        yield from ending_sessions_of(person_id)
        yield from add_passkey.script(person_id, chosen, third, now)
    yield from opening_session(person_id, session, "link", fourth, now)
