"""People, their ways in, links and sessions, as the store keeps them."""

from datetime import timedelta
from pathlib import Path

import pytest

from postroom.core.errors import Conflict, NotFound, SignInRefused
from postroom.core.sign_in.session_times import LINK_LIVES, OLD_SECRET_LIVES
from postroom.core.visitors import PERSON_ROLES
from postroom.mailboxes.accounts.sealing import reseal_all
from postroom.operations.people.people import hashed, new_link
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people import people, redeeming, sessions, sign_in_links
from postroom.store.people.audit import list_audit
from postroom.store.people.people import CODES, NewPasskey
from postroom.store.people.sessions import CheckedPassword, KeptSession
from postroom.vault.sealing import Vault
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.fault_cases_people import HASH, SEALED, added_person, new_passkey, new_session, opened
from support.store.fault_cases_registry import signed


async def redeem(
    database: Database, clock: ManualClock, secret: str, name: str = "mara", chosen: str | NewPasskey = HASH
) -> None:
    challenge = None if isinstance(chosen, str) else (hashed(f"challenge {chosen.id}"), clock() + timedelta(minutes=5))
    session = new_session(clock, f"key {new_id()}")
    entries = (new_id(), new_id(), new_id(), new_id())
    await database.run(redeeming.redeem_link(hashed(secret), name, chosen, challenge, session, entries, clock()))


async def first_link(database: Database, clock: ManualClock) -> str:
    made = new_link(clock())
    assert await database.run(sign_in_links.offer_first_link(made.link, clock()))
    return made.secret


async def found(database: Database, clock: ManualClock, key: str) -> KeptSession | None:
    return await database.run(sessions.find_session(hashed(key), clock()))


async def audited(database: Database) -> list[str]:
    return [each.action for each in await database.run(list_audit(100))][::-1]


async def test_the_first_link_makes_an_admin_who_is_signed_in(database: Database, clock: ManualClock) -> None:
    secret = await first_link(database, clock)
    await redeem(database, clock, secret)
    (mara,) = await database.run(people.list_people(clock()))
    assert (mara.name, mara.role, mara.has_password, mara.sessions) == ("mara", "admin", True, 1)
    assert await audited(database) == ["person.add", "person.password", "sign_in"]


async def test_a_link_works_once_and_for_a_day(database: Database, clock: ManualClock) -> None:
    secret = await first_link(database, clock)
    clock.forward(LINK_LIVES.total_seconds())
    with pytest.raises(SignInRefused, match="too old"):
        await redeem(database, clock, secret)
    secret = await first_link(database, clock)
    await redeem(database, clock, secret)
    with pytest.raises(SignInRefused, match="used before"):
        await redeem(database, clock, secret)
    assert await database.run(sign_in_links.find_link(hashed(secret), clock())) is None


async def test_only_one_of_two_first_links_makes_a_person(database: Database, clock: ManualClock) -> None:
    first, second = await first_link(database, clock), await first_link(database, clock)
    await redeem(database, clock, second)
    with pytest.raises(SignInRefused):
        await redeem(database, clock, first, "nils")
    assert not await database.run(sign_in_links.offer_first_link(new_link(clock()).link, clock()))


async def test_a_first_link_is_dead_once_somebody_was_added_otherwise(database: Database, clock: ManualClock) -> None:
    secret = await first_link(database, clock)
    await added_person(database, clock, "nils")
    with pytest.raises(SignInRefused):
        await redeem(database, clock, secret)


async def test_a_later_link_lets_the_person_in_again_without_codes_and_ends_their_sessions(
    database: Database, clock: ManualClock
) -> None:
    mara = await opened(database, clock)
    await database.run(people.set_person_password(mara.person_id, HASH, mara.session.id, signed(), clock()))
    await database.run(people.turn_on_codes(mara.person_id, SEALED, 7, signed(), clock()))
    made = new_link(clock())
    await database.run(sign_in_links.add_link("mara", made.link, signed(), clock()))
    with pytest.raises(SignInRefused):
        await redeem(database, clock, made.secret, "nils")
    await redeem(database, clock, made.secret, chosen=new_passkey())
    assert await found(database, clock, mara.key) is None
    person = await database.run(people.load_person(mara.person_id))
    assert person.codes is None
    assert person.password_hash is None, "a password that needed a code would now be enough without"
    assert len(await database.run(people.list_passkeys(mara.person_id))) == 1


async def test_a_new_link_ends_the_earlier_ones_of_the_person(database: Database, clock: ManualClock) -> None:
    _, secret = await added_person(database, clock)
    await database.run(sign_in_links.add_link("mara", new_link(clock()).link, signed(), clock()))
    with pytest.raises(SignInRefused):
        await redeem(database, clock, secret)


async def test_a_name_is_given_once(database: Database, clock: ManualClock) -> None:
    await added_person(database, clock)
    with pytest.raises(Conflict, match="already somebody called mara"):
        await added_person(database, clock)


async def test_a_change_of_role_is_audited_and_has_the_secrets_replaced(database: Database, clock: ManualClock) -> None:
    await opened(database, clock)
    nils = await opened(database, clock, "nils", "viewer")
    assert await database.run(people.change_role("nils", "operator", signed(), clock()))
    assert not await database.run(people.change_role("nils", "operator", signed(), clock()))
    kept = await found(database, clock, nils.key)
    assert kept is not None
    assert kept.role == "operator"
    assert kept.rotated_at < nils.session.rotated_at
    (entry,) = await database.run(list_audit(10, action="person.role"))
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "operator"})


async def test_the_only_admin_stays_one(database: Database, clock: ManualClock) -> None:
    await opened(database, clock)
    await opened(database, clock, "nils", "operator")
    with pytest.raises(Conflict, match="only admin"):
        await database.run(people.change_role("mara", "viewer", signed(), clock()))
    with pytest.raises(Conflict, match="only admin"):
        await database.run(people.remove_person("mara", signed(), clock()))
    await database.run(people.remove_person("nils", signed(), clock()))
    await database.run(people.remove_person("mara", signed(), clock()))
    assert not await database.run(people.has_people())


async def test_somebody_who_is_removed_is_signed_out(database: Database, clock: ManualClock) -> None:
    await opened(database, clock)
    nils = await opened(database, clock, "nils", "viewer")
    await database.run(people.add_passkey(nils.person_id, new_passkey(), signed(), clock()))
    await database.run(people.remove_person("nils", signed(), clock()))
    assert await found(database, clock, nils.key) is None
    assert await database.run(people.find_passkey("credential")) is None
    with pytest.raises(NotFound):
        await database.run(people.load_person(nils.person_id))


async def test_a_new_password_ends_the_other_sessions(database: Database, clock: ManualClock) -> None:
    mara = await opened(database, clock)
    await database.run(
        sessions.open_session(mara.person_id, new_session(clock, "other"), "password", signed(), clock())
    )
    await database.run(people.set_person_password(mara.person_id, HASH, mara.session.id, signed(), clock()))
    assert await found(database, clock, mara.key) is not None
    assert await found(database, clock, "other") is None


async def test_a_password_that_was_replaced_while_it_was_checked_opens_nothing(
    database: Database, clock: ManualClock
) -> None:
    mara, other = await opened(database, clock), "$argon2id$another"

    async def sign_in(key: str, password: CheckedPassword) -> None:
        session = new_session(clock, key)
        await database.run(sessions.open_session(mara.person_id, session, "password", signed(), clock(), password))

    await database.run(people.set_person_password(mara.person_id, HASH, mara.session.id, signed(), clock()))
    await sign_in("in time", CheckedPassword(HASH, with_code=False))
    await database.run(people.set_person_password(mara.person_id, other, mara.session.id, signed(), clock()))
    with pytest.raises(SignInRefused):
        await sign_in("too late", CheckedPassword(HASH, with_code=False))
    await database.run(people.turn_on_codes(mara.person_id, SEALED, 7, signed(), clock()))
    with pytest.raises(SignInRefused):
        await sign_in("without a code", CheckedPassword(other, with_code=False))
    await sign_in("with a code", CheckedPassword(other, with_code=True))
    await database.run(people.remove_person("mara", signed(), clock()))
    with pytest.raises(SignInRefused):
        await sign_in("gone", CheckedPassword(other, with_code=True))


async def test_a_code_is_used_once_and_none_before_it(database: Database, clock: ManualClock) -> None:
    mara = await opened(database, clock)
    await database.run(people.turn_on_codes(mara.person_id, SEALED, 7, signed(), clock()))
    assert not await database.run(people.use_code(mara.person_id, 7))
    assert await database.run(people.use_code(mara.person_id, 9))
    assert not await database.run(people.use_code(mara.person_id, 8))


async def test_the_secret_of_codes_is_sealed_anew_with_the_other_secrets(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    mara, vault = await opened(database, clock), Vault(tmp_path)
    vault.prepare([], clock())
    sealed = vault.seal(mara.person_id, CODES, "JBSWY3DP")
    await database.run(people.turn_on_codes(mara.person_id, sealed, 0, signed(), clock()))
    newest = vault.add_key(clock())
    done = await reseal_all(database, vault, newest, clock)
    assert (done.resealed, done.unopened) == (1, ())
    person = await database.run(people.load_person(mara.person_id))
    assert person.codes is not None
    assert person.codes.key_id == newest
    assert vault.open(person.codes, mara.person_id, CODES) == "JBSWY3DP"


async def test_the_last_way_in_is_not_removed(database: Database, clock: ManualClock) -> None:
    mara, passkey = await opened(database, clock), new_passkey()
    await database.run(people.add_passkey(mara.person_id, passkey, signed(), clock()))
    with pytest.raises(Conflict, match="only way in"):
        await database.run(people.remove_passkey(mara.person_id, passkey.id, signed(), clock()))
    await database.run(people.set_person_password(mara.person_id, HASH, None, signed(), clock()))
    await database.run(people.remove_passkey(mara.person_id, passkey.id, signed(), clock()))
    assert await database.run(people.list_passkeys(mara.person_id)) == []


async def test_nobody_removes_the_passkey_or_ends_the_session_of_another(
    database: Database, clock: ManualClock
) -> None:
    mara, nils = await opened(database, clock), await opened(database, clock, "nils")
    passkey = new_passkey()
    await database.run(people.add_passkey(mara.person_id, passkey, signed(), clock()))
    with pytest.raises(NotFound):
        await database.run(people.remove_passkey(nils.person_id, passkey.id, signed(), clock()))
    with pytest.raises(NotFound):
        await database.run(sessions.end_session(mara.session.id, nils.person_id, signed(), clock()))
    await database.run(sessions.end_session(mara.session.id, None, signed(), clock()))
    assert await found(database, clock, mara.key) is None


async def test_a_session_ends_after_a_while_without_use_and_in_any_case(database: Database, clock: ManualClock) -> None:
    mara = await opened(database, clock)
    clock.forward(1799)
    assert await found(database, clock, mara.key) is not None
    assert await database.run(sessions.note_session_use(mara.session.id, clock() + timedelta(hours=20), clock()))
    clock.forward(3600)
    assert await found(database, clock, mara.key) is not None
    clock.forward(12 * 3600)
    assert await found(database, clock, mara.key) is None
    await opened(database, clock, "nils")
    assert [each.name for each in await database.run(sessions.list_sessions(None, clock()))] == ["nils"]


async def test_a_secret_is_replaced_by_whoever_has_it_and_by_one_request(
    database: Database, clock: ManualClock
) -> None:
    mara = await opened(database, clock)
    id, old, new = mara.session.id, hashed(mara.secret), hashed("new")
    assert not await database.run(sessions.rotate_session(id, old, hashed("wrong"), new, clock()))
    assert await database.run(sessions.rotate_session(id, old, old, new, clock()))
    # Another request had decided the same at the same time.
    assert not await database.run(sessions.rotate_session(id, old, old, hashed("other"), clock()))
    # The answer with the new one was lost, so the old one gets another.
    assert await database.run(sessions.rotate_session(id, new, old, hashed("newer"), clock()))
    assert not await database.run(sessions.end_previous_secret(id, new, clock()))
    assert await database.run(sessions.end_previous_secret(id, hashed("newer"), clock()))
    assert not await database.run(sessions.rotate_session(id, hashed("newer"), old, hashed("newest"), clock()))
    kept = await found(database, clock, mara.key)
    assert kept is not None
    assert (kept.secret_sha256, kept.previous_sha256) == (hashed("newer"), old)
    assert kept.previous_until == clock() + OLD_SECRET_LIVES


async def test_the_answer_to_a_challenge_counts_once(database: Database, clock: ManualClock) -> None:
    mara, passkey, ends = await opened(database, clock), new_passkey(), clock() + timedelta(minutes=5)
    await database.run(people.add_passkey(mara.person_id, passkey, signed(), clock()))
    assert await database.run(sessions.use_passkey(passkey.id, 3, hashed("challenge"), ends, clock()))
    assert not await database.run(sessions.use_passkey(passkey.id, 4, hashed("challenge"), ends, clock()))
    known = await database.run(people.find_passkey("credential"))
    assert known is not None
    assert (known.person, known.sign_count) == ("mara", 3)
    assert await database.run(sessions.challenge_key("one", clock())) == "one"
    assert await database.run(sessions.challenge_key("two", clock())) == "one"


async def test_what_has_ended_is_cleared_away_at_the_next_sign_in(database: Database, clock: ManualClock) -> None:
    await opened(database, clock)
    await database.run(sessions.use_challenge(hashed("old"), clock() + timedelta(minutes=5)))
    clock.forward(2 * 24 * 3600)
    await opened(database, clock, "nils")
    kept = {name.removeprefix("postroom."): rows for name, rows in (await dump(database)).items()}
    assert len(kept["sessions"]) == 1
    assert len(kept["sign_in_links"]) == 1
    assert not kept.get("used_challenges")


async def test_no_secret_is_stored(database: Database, clock: ManualClock) -> None:
    mara = await opened(database, clock)
    _, secret = await added_person(database, clock, "nils")
    stored = str(await dump(database))
    assert mara.key not in stored
    assert mara.secret not in stored
    assert secret not in stored


async def test_the_schema_knows_the_same_roles(database: Database, clock: ManualClock) -> None:
    for role in PERSON_ROLES:
        await added_person(database, clock, f"a-{role}", role)
    assert {each.role for each in await database.run(people.list_people(clock()))} == set(PERSON_ROLES)
