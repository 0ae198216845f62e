"""Sign-in: somebody proves who they are by password (and code), by passkey, or by a one-time link, and gets a session.

Neither the answer nor its time tells a wrong name from a wrong password or code. Every sign-in and every failure is in
the audit log; a failure names a person only if there is one, since people type passwords into the wrong field.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.errors import SignInRefused, VaultError
from postroom.core.sign_in.callers import SignInCaller
from postroom.core.sign_in.names import compared_name, person_name
from postroom.core.sign_in.passwords import LONGEST, check_password
from postroom.core.sign_in.throttle import SignInThrottle
from postroom.core.visitors import PersonRole
from postroom.operations.people import passkeys
from postroom.operations.people.codes import matching_step
from postroom.operations.people.passkeys import Assertion, Challenges, SiteAddress
from postroom.operations.people.people import hashed
from postroom.operations.people.sessions import LiveSession, NewCookie, Sessions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import people, redeeming, sessions, sign_in_links
from postroom.store.people.audit import AuditEntry, Signature, record_audit
from postroom.store.people.people import CODES, Person
from postroom.store.people.sessions import CheckedPassword
from postroom.store.people.sign_in_links import OpenLink, dead_link
from postroom.system.boot_clock import since_boot
from postroom.system.wall_clock import Clock, wall_clock
from postroom.vault.password_threads import PasswordThreads
from postroom.vault.sealing import Vault

BUSY_S = 5.0


@dataclass(frozen=True, slots=True)
class Proof:
    """Who somebody has proven to be, and how."""

    person_id: UUID
    name: str
    role: PersonRole
    by: str
    password: CheckedPassword | None = field(default=None, repr=False)


class SignIn:
    """Sign-in of one process."""

    def __init__(self, database: Database, vault: Vault, sessions: Sessions, *, clock: Clock = wall_clock) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._throttle = SignInThrottle()
        self.sessions = sessions
        self.passwords = PasswordThreads()
        self.challenges = Challenges(database, clock)

    def close(self) -> None:
        self.passwords.close()

    async def is_first_start(self) -> bool:
        return not await self._database.run(people.has_people())

    async def with_password(self, name: str, password: str, code: str, caller: SignInCaller) -> NewCookie:
        """Sign in by name and password, and by a code for those who use an app. Raises SignInRefused."""
        return await self._open(await self._prove(compared_name(name), password, code, caller), caller)

    async def with_passkey(self, site: SiteAddress, credential: Mapping[str, Any], caller: SignInCaller) -> NewCookie:
        """Sign in by a passkey, which says whose it is. Raises SignInRefused."""
        return await self._open(await self._prove_passkey(site, credential, "sign-in", None, caller), caller)

    async def again_with_password(
        self, live: LiveSession, password: str, code: str, caller: SignInCaller
    ) -> NewCookie | None:
        """Have the person of a session prove again who they are."""
        return await self._again(live, await self._prove(live.kept.name, password, code, caller))

    async def again_with_passkey(
        self, live: LiveSession, site: SiteAddress, credential: Mapping[str, Any], caller: SignInCaller
    ) -> NewCookie | None:
        """The same with a passkey, which must be theirs."""
        purpose, owner = again_purpose(live), live.kept.person_id
        return await self._again(live, await self._prove_passkey(site, credential, purpose, owner, caller))

    async def find_link(self, secret: str) -> OpenLink:
        """The link with this secret. Raises SignInRefused if it works no more."""
        found = await self._database.run(sign_in_links.find_link(hashed(secret), self._clock()))
        if found is None:
            raise dead_link()
        return found

    async def link_with_password(self, secret: str, name: str, password: str, caller: SignInCaller) -> NewCookie:
        """Use up a link for a password. Raises BadInput if the name or the password will not do."""
        chosen = await self._name_for(secret, name)
        check_password(password, chosen)
        return await self._redeem(secret, chosen, await self._hash(password), None, caller)

    async def link_with_passkey(
        self, secret: str, name: str, site: SiteAddress, credential: Mapping[str, Any], caller: SignInCaller
    ) -> NewCookie:
        """Use up a link for a passkey that the browser has made."""
        chosen, link = await self._name_for(secret, name), await self.find_link(secret)
        challenge = passkeys.challenge_in(credential)
        known = await self.challenges.check(challenge, link_purpose(link))
        passkey = passkeys.check_registration(site, credential, challenge, caller.browser)
        return await self._redeem(secret, chosen, passkey, (known.sha256, known.expires_at), caller)

    async def hashed_password(self, password: str, name: str) -> str:
        """Hash a new password. Raises BadInput if it will not do."""
        check_password(password, name)
        return await self._hash(password)

    async def _hash(self, password: str) -> str:
        self._check_not_busy()
        with self.passwords.waiting():
            return await self.passwords.hashed(password)

    async def _name_for(self, secret: str, name: str) -> str:
        link = await self.find_link(secret)
        return person_name(name) if link.name is None else link.name

    async def _redeem(
        self, secret: str, name: str, chosen: Any, challenge: tuple[str, datetime] | None, caller: SignInCaller
    ) -> NewCookie:
        now = self._clock()
        session, cookie = self.sessions.new(caller, now)
        entries = (new_id(), new_id(), new_id(), new_id())
        await self._database.run(redeeming.redeem_link(hashed(secret), name, chosen, challenge, session, entries, now))
        return cookie

    async def _open(self, proof: Proof, caller: SignInCaller) -> NewCookie:
        now = self._clock()
        session, cookie = self.sessions.new(caller, now)
        await self._database.run(
            sessions.open_session(proof.person_id, session, proof.by, _sign(proof), now, proof.password)
        )
        return cookie

    async def _again(self, live: LiveSession, proof: Proof) -> NewCookie | None:
        if not await self._database.run(sessions.prove_session(live.kept, proof.by, _sign(proof), self._clock())):
            raise SignInRefused("Your session has ended. Sign in again.")
        return await self.sessions.replace_secret(live)

    async def _prove(self, name: str, password: str, code: str, caller: SignInCaller) -> Proof:
        self._check_throttle(name, caller.counted)
        self._check_not_busy()
        self._throttle.tries(name, caller.counted, since_boot())
        with self.passwords.waiting():
            person = await self._database.run(people.find_person(name)) if name else None
            kept = None if person is None else person.password_hash
            right = len(password) <= LONGEST and await self.passwords.is_right(kept, password)
        if person is None or kept is None or not right or not await self._is_code_right(person, code):
            await self._note_failure(person, "password", caller)
            raise self._wrong(name, caller.counted)
        self._throttle.succeeded(name, caller.counted)
        checked = CheckedPassword(kept, person.codes is not None)
        by = "password and code" if checked.with_code else "password"
        return Proof(person.id, person.name, person.role, by, checked)

    async def _is_code_right(self, person: Person, code: str) -> bool:
        if person.codes is None:
            return True
        try:
            secret = self._vault.open(person.codes, person.id, CODES)
        except VaultError:
            raise SignInRefused(
                "Your code cannot be checked: the key that protects it is missing. Ask for a link: "
                f"`postroom person link {person.name}`."
            ) from None
        step = matching_step(secret, code, self._clock())
        return step is not None and await self._database.run(people.use_code(person.id, step))

    async def _prove_passkey(
        self, site: SiteAddress, credential: Mapping[str, Any], purpose: str, owner: UUID | None, caller: SignInCaller
    ) -> Proof:
        # Passkeys cannot be guessed; the limit keeps strangers from filling the audit log.
        name = f"passkey from {caller.counted}"
        self._check_throttle(name, caller.counted)
        self._throttle.tries(name, caller.counted, since_boot())
        try:
            found = await self._assertion(site, credential, purpose, owner)
        except SignInRefused:
            await self._note_failure(None, "passkey", caller)
            raise
        self._throttle.succeeded(name, caller.counted)
        return Proof(found.passkey.person_id, found.passkey.person, found.passkey.role, "passkey")

    async def _assertion(
        self, site: SiteAddress, credential: Mapping[str, Any], purpose: str, owner: UUID | None
    ) -> Assertion:
        answered = passkeys.challenge_in(credential)
        challenge = await self.challenges.check(answered, purpose)
        known = await self._database.run(people.find_passkey(passkeys.credential_id_in(credential)))
        if known is None or owner not in (None, known.person_id):
            raise passkeys.refused()
        count = passkeys.check_assertion(site, credential, known, answered)
        used = sessions.use_passkey(known.id, count, challenge.sha256, challenge.expires_at, self._clock())
        if not await self._database.run(used):
            raise passkeys.refused()
        return Assertion(known, count, challenge)

    def _check_throttle(self, name: str, address: str) -> None:
        wait_s = self._throttle.wait_s(name, address, since_boot())
        if wait_s:
            raise SignInRefused(f"Too many tries. Wait {_minutes(wait_s)}, or use a one-time link.", wait_s)

    def _check_not_busy(self) -> None:
        if self.passwords.is_busy:
            raise SignInRefused("Too many people sign in at this moment. Try again in a few seconds.", BUSY_S)

    def _wrong(self, name: str, address: str) -> SignInRefused:
        now = since_boot()
        left, wait_s = self._throttle.tries_left(name, address, now), self._throttle.wait_s(name, address, now)
        if wait_s:
            return SignInRefused(
                f"Name, password or code is wrong. Wait {_minutes(wait_s)} before the next try.", wait_s
            )
        tries = "1 more try" if left == 1 else f"{left} more tries"
        return SignInRefused(f"Name, password or code is wrong. {tries}, then a wait.")

    async def _note_failure(self, person: Person | None, by: str, caller: SignInCaller) -> None:
        after = {"by": by, "browser": caller.browser, "address": caller.network}
        whom = "unknown" if person is None else str(person.id)
        entry = AuditEntry(new_id(), "sign-in", "nobody", "sign_in.refused", "person", whom, after=after)
        await self._database.run(record_audit(entry, self._clock()))


def again_purpose(live: LiveSession) -> str:
    return f"again:{live.kept.id}"


def link_purpose(link: OpenLink) -> str:
    return f"link:{link.id}"


def _sign(proof: Proof) -> Signature:
    return Signature(new_id(), f"person:{proof.name}", proof.role)


def _minutes(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
