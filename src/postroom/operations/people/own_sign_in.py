"""Changes that people make to their own ways in: a new password, codes of an app, passkeys, and their sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.mailboxes.accounts.sealing import with_newest_key
from postroom.operations.people import passkeys
from postroom.operations.people.audit import next_entry
from postroom.operations.people.codes import checked_secret, matching_step
from postroom.operations.people.passkeys import SiteAddress
from postroom.operations.people.sessions import LiveSession, NewCookie
from postroom.operations.people.sign_in import SignIn
from postroom.store.accounts.secret_keys import list_key_uses
from postroom.store.engine.database import Database
from postroom.store.people import people, sessions
from postroom.store.people.audit import Signature
from postroom.store.people.people import CODES, PasskeyView
from postroom.store.people.sessions import SessionView
from postroom.system.wall_clock import Clock, wall_clock
from postroom.vault.sealing import Vault


@dataclass(frozen=True, slots=True)
class OwnSignIn:
    """The ways in of one person, and where they are signed in. `this` is the session that asks."""

    has_password: bool
    has_codes: bool
    passkeys: list[PasskeyView]
    sessions: list[SessionView]
    this: UUID


class OwnWaysIn:
    """Changes to the person of a session, signed by themselves."""

    def __init__(self, database: Database, vault: Vault, sign_in: SignIn, clock: Clock = wall_clock) -> None:
        self._database = database
        self._vault = vault
        self._sign_in = sign_in
        self._clock = clock

    async def show(self, live: LiveSession) -> OwnSignIn:
        person = await self._database.run(people.load_person(live.kept.person_id))
        own = await self._database.run(people.list_passkeys(person.id))
        open_ones = await self._database.run(sessions.list_sessions(person.name, self._clock()))
        return OwnSignIn(person.password_hash is not None, person.codes is not None, own, open_ones, live.kept.id)

    async def set_password(self, live: LiveSession, password: str, signed: Signature) -> NewCookie | None:
        """Replace the password. All other sessions end, and this one gets a new secret."""
        password_hash = await self._sign_in.hashed_password(password, live.kept.name)
        person_id, now = live.kept.person_id, self._clock()
        await self._database.run(people.set_person_password(person_id, password_hash, live.kept.id, signed, now))
        return await self._sign_in.sessions.replace_secret(live)

    async def turn_on_codes(self, live: LiveSession, secret: str, code: str, signed: Signature) -> None:
        """Ask for codes from now on. The first one proves that the app has the secret."""
        id, now = live.kept.person_id, self._clock()
        step = matching_step(checked_secret(secret), code, now)
        if step is None:
            raise BadInput(
                "code", "is not the one that the app shows now", "enter the secret into the app, then its code"
            )
        person = await self._database.run(people.load_person(id))
        if person.password_hash is None:
            raise BadInput("code", "goes with a password, and you have none", "choose a password first")
        uses = await self._database.run(list_key_uses())
        self._vault.prepare([use.id for use in uses if use.secrets], now)
        await with_newest_key(
            self._database,
            lambda: people.turn_on_codes(id, self._vault.seal(id, CODES, secret), step, signed, self._clock()),
        )

    async def turn_off_codes(self, live: LiveSession, signed: Signature) -> bool:
        return await self._database.run(people.turn_off_codes(live.kept.person_id, signed, self._clock()))

    async def passkey_options(self, live: LiveSession, site: SiteAddress) -> Mapping[str, Any]:
        """Return the options with which the browser makes a passkey for the person."""
        known = await self._database.run(people.list_passkeys(live.kept.person_id))
        challenge = await self._sign_in.challenges.new(_adding(live))
        names = [each.credential_id for each in known]
        return passkeys.registration_options(site, challenge, live.kept.person_id, live.kept.name, names)

    async def add_passkey(
        self, live: LiveSession, site: SiteAddress, credential: Mapping[str, Any], name: str, signed: Signature
    ) -> None:
        answered = passkeys.challenge_in(credential)
        challenge = await self._sign_in.challenges.check(answered, _adding(live))
        passkey = passkeys.check_registration(site, credential, answered, name)
        if not await self._database.run(sessions.use_challenge(challenge.sha256, challenge.expires_at)):
            raise passkeys.refused()
        await self._database.run(people.add_passkey(live.kept.person_id, passkey, signed, self._clock()))

    async def remove_passkey(self, live: LiveSession, id: UUID, signed: Signature) -> None:
        await self._database.run(people.remove_passkey(live.kept.person_id, id, signed, self._clock()))

    async def end_session(self, live: LiveSession, id: UUID, signed: Signature) -> None:
        """End one of the person's own sessions, such as on a device that they have lost."""
        await self._database.run(sessions.end_session(id, live.kept.person_id, signed, self._clock()))

    async def end_other_sessions(self, live: LiveSession, signed: Signature) -> int:
        return await self._database.run(
            sessions.end_sessions(live.kept.name, live.kept.id, next_entry(signed), self._clock())
        )


def _adding(live: LiveSession) -> str:
    return f"add:{live.kept.person_id}"
