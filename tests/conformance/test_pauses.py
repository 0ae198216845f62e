"""The kill switch and its races, and what automation must respect: protection and shadow."""

import asyncio
from typing import Any

import pytest

from postroom.core.actions.safety import Protected
from postroom.core.errors import BadInput, Parked
from postroom.store.actions import pauses, protection
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import labels, mail
from postroom.store.people.audit import Signature, list_audit
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup, listen


async def pause(setup: JobSetup, scope: str = pauses.ALL, reason: str = "to look") -> pauses.Pause:
    return await setup.database.run(pauses.pause(scope, reason, signed(), setup.clock()))


async def resume(setup: JobSetup, scope: str = pauses.ALL) -> int | None:
    return await setup.database.run(pauses.resume(scope, signed(), setup.clock()))


async def actions_noted(setup: JobSetup) -> list[str]:
    return [entry.action for entry in reversed(await setup.database.run(list_audit(20)))]


# pauses


async def test_a_pause_stands_until_it_is_resumed_and_both_are_noted(setup: JobSetup) -> None:
    set_at = setup.clock()
    assert await pause(setup) == pauses.Pause("all", "to look", "cli:ada", set_at)
    assert await setup.database.run(pauses.standing_pauses()) == [pauses.Pause("all", "to look", "cli:ada", set_at)]
    assert await resume(setup) == 0
    assert await setup.database.run(pauses.standing_pauses()) == []
    assert await actions_noted(setup) == ["mutations.pause", "mutations.resume"]


async def test_a_pause_that_is_set_again_has_a_new_reason_and_the_old_beginning(setup: JobSetup) -> None:
    begun = setup.clock()
    await pause(setup, reason="first")
    setup.clock.forward(60)
    assert await pause(setup, reason="second") == pauses.Pause("all", "second", "cli:ada", begun)
    assert len(await setup.database.run(pauses.standing_pauses())) == 1


async def test_a_token_changes_nothing_of_a_pause_that_a_person_has_set(setup: JobSetup) -> None:
    stands = await pause(setup, reason="somebody has my password")
    by_token = Signature(new_id(), f"token:{new_id()}", "dashboard")
    again = pauses.pause(pauses.ALL, "a test, may be resumed", by_token, setup.clock.forward(60))
    assert await setup.database.run(again) == stands
    assert await setup.database.run(pauses.standing_pauses()) == [stands]
    assert await actions_noted(setup) == ["mutations.pause", "mutations.pause"]


async def test_what_is_not_paused_cannot_be_resumed_and_nothing_is_noted(setup: JobSetup) -> None:
    before = await dump(setup.database)
    assert await resume(setup) is None
    assert await dump(setup.database) == before


async def test_a_pause_of_all_and_one_of_the_account_are_both_met_and_that_of_all_is_named_first(
    setup: JobSetup,
) -> None:
    account, other = new_id(), new_id()
    await setup.database.run(pauses.check_paused(account))
    await pause(setup, str(account), "this one")
    with pytest.raises(Parked, match="this one"):
        await setup.database.run(pauses.check_paused(account))
    await setup.database.run(pauses.check_paused(other))
    await pause(setup, pauses.ALL, "everything")
    for each in (account, other):
        with pytest.raises(Parked, match="everything") as parked:
            await setup.database.run(pauses.check_paused(each))
        assert parked.value.key == "pause:all"
    await resume(setup)
    with pytest.raises(Parked, match="this one"):
        await setup.database.run(pauses.check_paused(account))


async def test_the_end_of_a_pause_releases_what_waited_for_it_and_nothing_else(setup: JobSetup) -> None:
    account = str(new_id())
    await pause(setup)
    await pause(setup, account)
    mine = [await setup.claimed() for _ in range(2)]
    others = await setup.claimed()
    for job in mine:
        await setup.park(job, "pause:all")
    await setup.park(others, f"pause:{account}")
    assert await resume(setup) == 2
    again = await setup.claim()
    assert [job.id for job in again] == [job.id for job in mine]
    assert {job.attempts for job in again} == {1}, "waiting has used up no attempt"
    assert (await setup.show(others.id)).parked_by == f"pause:{account}"


async def test_a_job_that_meets_a_pause_and_parks_after_its_end_goes_on_at_once(setup: JobSetup) -> None:
    await pause(setup)
    job = await setup.claimed()
    await resume(setup)
    assert await setup.park(job, "pause:all")
    assert (await setup.claim_one()).id == job.id


async def test_a_job_that_parks_after_the_pause_was_ended_and_set_again_waits_for_the_new_one(setup: JobSetup) -> None:
    await pause(setup)
    job = await setup.claimed()
    await resume(setup)
    await pause(setup)
    await setup.park(job, "pause:all")
    assert await setup.claim() == []
    assert await resume(setup) == 1


async def test_a_job_that_parks_while_the_pause_is_being_ended_never_waits_for_ever(
    setup: JobSetup, second_database: Database
) -> None:
    for _ in range(10):
        await pause(setup)
        job = await setup.claimed()
        parking = second_database.run(jobs.park(job.claim, "pause:all", "paused", setup.clock()))
        parked, released = await asyncio.gather(parking, resume(setup))
        assert parked
        assert released in (0, 1)
        (again,) = await setup.claim()
        assert again.id == job.id
        await setup.finish(again)


# protection


@pytest.mark.parametrize("name", ["Family/Müller", "a@b"])
async def test_a_label_is_protected_by_its_name_and_by_the_ids_it_stands_for(setup: JobSetup, name: str) -> None:
    account = (
        await setup.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", setup.clock()))
    ).id
    with pytest.raises(BadInput, match="protect nothing"):
        await setup.database.run(protection.protect("label", name, "family", signed(), setup.clock()))
    await setup.database.run(labels.sync_labels(account, [labels.SeenLabel("Label_7", name, "user")], setup.clock()))
    assert await setup.database.run(protection.protect("label", name.upper(), "", signed(), setup.clock()))
    found = (await setup.database.run(protection.restraints(account, setup.clock()))).protected
    assert found == Protected(labels=frozenset({name.casefold()}), label_ids={"Label_7": name.casefold()})
    assert await setup.database.run(protection.lost_protection()) == []
    anew = [labels.SeenLabel("Label_7", "Other", "user"), labels.SeenLabel("Label_8", name, "user")]
    await setup.database.run(labels.sync_labels(account, anew, setup.clock()))
    found = (await setup.database.run(protection.restraints(account, setup.clock()))).protected
    assert found.label_ids.keys() == {"Label_7", "Label_8"}


async def test_a_label_that_is_protected_no_longer_is_so_by_no_id_either(setup: JobSetup) -> None:
    account = (
        await setup.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", setup.clock()))
    ).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("Label_8", "Taxes", "user")]
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    for name in ("legal", "taxes"):
        await setup.database.run(protection.protect("label", name, "", signed(), setup.clock()))
    assert await setup.database.run(protection.unprotect("label", "Legal", signed(), setup.clock()))
    found = (await setup.database.run(protection.restraints(account, setup.clock()))).protected
    assert found == Protected(labels=frozenset({"taxes"}), label_ids={"Label_8": "taxes"})


async def test_a_label_is_protected_by_its_id_as_well_as_by_its_name(setup: JobSetup) -> None:
    account = (
        await setup.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", setup.clock()))
    ).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user")]
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    assert await setup.database.run(protection.protect("label", "Label_7", "", signed(), setup.clock())) == "label_7"
    found = (await setup.database.run(protection.restraints(account, setup.clock()))).protected
    assert found.reason("x@y.example", frozenset({"Label_7"})) is not None


async def test_a_label_of_320_characters_is_the_longest_that_is_protected(setup: JobSetup) -> None:
    account = (
        await setup.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", setup.clock()))
    ).id
    seen = [labels.SeenLabel(f"Label_{length}", "x" * length, "user") for length in (320, 321)]
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    await setup.database.run(protection.protect("label", "x" * 320, "", signed(), setup.clock()))
    with pytest.raises(BadInput, match="too long"):
        await setup.database.run(protection.protect("label", "x" * 321, "", signed(), setup.clock()))


async def test_a_protected_label_that_was_renamed_or_deleted_is_reported(setup: JobSetup) -> None:
    account = (
        await setup.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", setup.clock()))
    ).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("Label_8", "Taxes", "user")]
    await setup.database.run(labels.sync_labels(account, seen, setup.clock()))
    for name in ("legal", "taxes"):
        await setup.database.run(protection.protect("label", name, "", signed(), setup.clock()))
    await setup.database.run(labels.sync_labels(account, [seen[0]._replace(name="Contracts")], setup.clock()))
    lost = [protection.LostProtection("legal", "Contracts"), protection.LostProtection("taxes", None)]
    assert await setup.database.run(protection.lost_protection()) == lost


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("sender", " Ann@Shop.Example ", "ann@shop.example"),
        ("sender", "Boss@Bücher.example", "boss@xn--bcher-kva.example"),
        ("sender", '"a,b"@shop.example', '"a,b"@shop.example'),
        ("domain", "Shop.Example", "shop.example"),
        ("domain", "Bücher.example.", "xn--bcher-kva.example"),
        ("label", "Starred", "starred"),
    ],
)
async def test_what_is_protected_is_kept_as_it_is_compared(setup: JobSetup, kind: Any, given: str, kept: str) -> None:
    assert await setup.database.run(protection.protect(kind, given, "family", signed(), setup.clock())) == kept
    (view,) = await setup.database.run(protection.list_protected())
    assert (view.kind, view.value, view.reason, view.created_at) == (kind, kept, "family", setup.clock())
    found = await setup.database.run(protection.restraints(new_id(), setup.clock()))
    groups = {"sender": found.protected.senders, "domain": found.protected.domains, "label": found.protected.labels}
    assert groups.pop(kind) == {kept}
    assert not any(groups.values())
    assert await setup.database.run(protection.unprotect(kind, given.upper(), signed(), setup.clock()))
    assert await setup.database.run(protection.list_protected()) == []
    assert await actions_noted(setup) == ["protect", "unprotect"]


@pytest.mark.parametrize("kind", ["sender", "domain"])
@pytest.mark.parametrize("written", ["boss@bücher.example", "BOSS@XN--BCHER-KVA.EXAMPLE"])
async def test_a_sender_is_protected_however_its_domain_is_written(setup: JobSetup, kind: Any, written: str) -> None:
    given = written if kind == "sender" else written.rpartition("@")[2]
    await setup.database.run(protection.protect(kind, given, "", signed(), setup.clock()))
    found = await setup.database.run(protection.restraints(new_id(), setup.clock()))
    for sender in ("boss@bücher.example", "Boss@xn--bcher-kva.example"):
        assert found.protected.reason(sender, frozenset()) is not None
    assert found.protected.reason("boss@bucher.example", frozenset()) is None


async def test_to_protect_again_changes_the_reason_and_not_the_beginning(setup: JobSetup) -> None:
    begun = setup.clock()
    await setup.database.run(protection.protect("domain", "a.example", "first", signed(), begun))
    setup.clock.forward(60)
    await setup.database.run(protection.protect("domain", "A.example", "second", signed(), setup.clock()))
    (view,) = await setup.database.run(protection.list_protected())
    assert (view.reason, view.created_at) == ("second", begun)


async def test_what_was_not_protected_is_not_unprotected_and_nothing_is_noted(setup: JobSetup) -> None:
    before = await dump(setup.database)
    assert not await setup.database.run(protection.unprotect("label", "Old", signed(), setup.clock()))
    assert await dump(setup.database) == before


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("sender", "shop.example"),
        ("sender", ""),
        ("domain", "ann@shop.example"),
        ("domain", "  "),
        ("label", ""),
        ("sender", "Ann <ann@shop.example>"),
        ("sender", "ann@shop.example, bob@shop.example"),
        ("sender", "*@shop.example"),
        ("sender", "ann@shop..example"),
        ("domain", "*.shop.example"),
        ("domain", ".shop.example"),
        ("label", "a\nb"),
        ("label", "x" * 321),
    ],
)
async def test_what_can_never_match_is_refused(setup: JobSetup, kind: Any, value: str) -> None:
    before = await dump(setup.database)
    with pytest.raises(BadInput) as refused:
        await setup.database.run(protection.protect(kind, value, "", signed(), setup.clock()))
    assert refused.value.field == kind
    assert await dump(setup.database) == before


# shadows


async def test_what_runs_in_shadow_begins_and_ends_once_and_both_are_noted(setup: JobSetup) -> None:
    run = setup.database.run
    assert await run(protection.begin_shadow("category", "newsletters", signed(), setup.clock()))
    assert not await run(protection.begin_shadow("category", "newsletters", signed(), setup.clock()))
    found = await run(protection.restraints(new_id(), setup.clock()))
    assert (found.shadowed_categories, found.model_in_shadow) == ({"newsletters"}, False)
    assert await run(protection.begin_shadow("model", "", signed(), setup.clock()))
    assert (await run(protection.restraints(new_id(), setup.clock()))).model_in_shadow
    assert await run(protection.end_shadow("category", "newsletters", signed(), setup.clock()))
    assert await actions_noted(setup) == ["shadow.begin", "shadow.begin", "shadow.end"]
    assert not await run(protection.end_shadow("category", "newsletters", signed(), setup.clock()))
    left = await run(protection.restraints(new_id(), setup.clock()))
    assert left == protection.Restraints(Protected(), frozenset(), True, 0)
    assert await actions_noted(setup) == ["shadow.begin", "shadow.begin", "shadow.end"]


async def test_whoever_listens_hears_that_a_pause_began_and_ended(setup: JobSetup) -> None:
    heard = await listen(setup.database, pauses.CHANNEL)
    await pause(setup)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == pauses.ALL
    await resume(setup)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == pauses.ALL
