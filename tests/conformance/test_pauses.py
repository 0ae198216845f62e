"""The kill switch and its races, and what automation has to respect: the protected, and what runs in shadow."""

import asyncio
from typing import Any

import pytest

from conformance.desk import Desk, listen
from conformance.dump import dump
from conformance.fault_cases_registry import signed
from postroom.core.actions.safety import Protected
from postroom.core.errors import BadInput, Parked
from postroom.store import jobs, labels, mail, pauses, protection
from postroom.store.audit import list_audit
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from support.patience import PATIENCE_S


async def pause(desk: Desk, scope: str = pauses.ALL, reason: str = "to look") -> pauses.Pause:
    return await desk.database.run(pauses.pause(scope, reason, signed(), desk.clock()))


async def resume(desk: Desk, scope: str = pauses.ALL) -> int | None:
    return await desk.database.run(pauses.resume(scope, signed(), desk.clock()))


async def actions_noted(desk: Desk) -> list[str]:
    return [entry.action for entry in reversed(await desk.database.run(list_audit(20)))]


# pauses


async def test_a_pause_stands_until_it_is_resumed_and_both_are_noted(desk: Desk) -> None:
    set_at = desk.clock()
    assert await pause(desk) == pauses.Pause("all", "to look", "cli:ada", set_at)
    assert await desk.database.run(pauses.standing_pauses()) == [pauses.Pause("all", "to look", "cli:ada", set_at)]
    assert await resume(desk) == 0
    assert await desk.database.run(pauses.standing_pauses()) == []
    assert await actions_noted(desk) == ["mutations.pause", "mutations.resume"]


async def test_a_pause_that_is_set_again_has_a_new_reason_and_the_old_beginning(desk: Desk) -> None:
    begun = desk.clock()
    await pause(desk, reason="first")
    desk.clock.forward(60)
    assert await pause(desk, reason="second") == pauses.Pause("all", "second", "cli:ada", begun)
    assert len(await desk.database.run(pauses.standing_pauses())) == 1


async def test_what_is_not_paused_cannot_be_resumed_and_nothing_is_noted(desk: Desk) -> None:
    before = await dump(desk.database)
    assert await resume(desk) is None
    assert await dump(desk.database) == before


async def test_a_pause_of_all_and_one_of_the_account_are_both_met_and_that_of_all_is_named_first(desk: Desk) -> None:
    account, other = new_id(), new_id()
    await desk.database.run(pauses.check_paused(account))
    await pause(desk, str(account), "this one")
    with pytest.raises(Parked, match="this one"):
        await desk.database.run(pauses.check_paused(account))
    await desk.database.run(pauses.check_paused(other))
    await pause(desk, pauses.ALL, "everything")
    for each in (account, other):
        with pytest.raises(Parked, match="everything") as parked:
            await desk.database.run(pauses.check_paused(each))
        assert parked.value.key == "pause:all"
    await resume(desk)
    with pytest.raises(Parked, match="this one"):
        await desk.database.run(pauses.check_paused(account))


async def test_the_end_of_a_pause_releases_what_waited_for_it_and_nothing_else(desk: Desk) -> None:
    account = str(new_id())
    await pause(desk)
    await pause(desk, account)
    mine = [await desk.claimed() for _ in range(2)]
    others = await desk.claimed()
    for job in mine:
        await desk.park(job, "pause:all")
    await desk.park(others, f"pause:{account}")
    assert await resume(desk) == 2
    again = await desk.claim()
    assert [job.id for job in again] == [job.id for job in mine]
    assert {job.attempts for job in again} == {1}, "waiting has used up no attempt"
    assert (await desk.show(others.id)).parked_by == f"pause:{account}"


async def test_a_job_that_meets_a_pause_and_parks_after_its_end_goes_on_at_once(desk: Desk) -> None:
    await pause(desk)
    job = await desk.claimed()
    await resume(desk)
    assert await desk.park(job, "pause:all")
    assert (await desk.claim_one()).id == job.id


async def test_a_job_that_parks_after_the_pause_was_ended_and_set_again_waits_for_the_new_one(desk: Desk) -> None:
    await pause(desk)
    job = await desk.claimed()
    await resume(desk)
    await pause(desk)
    await desk.park(job, "pause:all")
    assert await desk.claim() == []
    assert await resume(desk) == 1


async def test_a_job_that_parks_while_the_pause_is_being_ended_never_waits_for_ever(
    desk: Desk, second_database: Database
) -> None:
    for _ in range(10):
        await pause(desk)
        job = await desk.claimed()
        parking = second_database.run(jobs.park(job.claim, "pause:all", "paused", desk.clock()))
        parked, released = await asyncio.gather(parking, resume(desk))
        assert parked
        assert released in (0, 1)
        (again,) = await desk.claim()
        assert again.id == job.id
        await desk.finish(again)


# protection


@pytest.mark.parametrize("name", ["Family/Müller", "a@b"])
async def test_a_label_is_protected_by_its_name_and_by_the_ids_it_stands_for(desk: Desk, name: str) -> None:
    account = (await desk.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", desk.clock()))).id
    with pytest.raises(BadInput, match="protect nothing"):
        await desk.database.run(protection.protect("label", name, "family", signed(), desk.clock()))
    await desk.database.run(labels.sync_labels(account, [labels.SeenLabel("Label_7", name, "user")], desk.clock()))
    assert await desk.database.run(protection.protect("label", name.upper(), "", signed(), desk.clock()))
    found = (await desk.database.run(protection.restraints(account, desk.clock()))).protected
    assert found == Protected(labels=frozenset({name.casefold()}), label_ids={"Label_7": name.casefold()})
    assert await desk.database.run(protection.lost_protection()) == []
    anew = [labels.SeenLabel("Label_7", "Other", "user"), labels.SeenLabel("Label_8", name, "user")]
    await desk.database.run(labels.sync_labels(account, anew, desk.clock()))
    found = (await desk.database.run(protection.restraints(account, desk.clock()))).protected
    assert found.label_ids.keys() == {"Label_7", "Label_8"}


async def test_a_label_that_is_protected_no_longer_is_so_by_no_id_either(desk: Desk) -> None:
    account = (await desk.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", desk.clock()))).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("Label_8", "Taxes", "user")]
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    for name in ("legal", "taxes"):
        await desk.database.run(protection.protect("label", name, "", signed(), desk.clock()))
    assert await desk.database.run(protection.unprotect("label", "Legal", signed(), desk.clock()))
    found = (await desk.database.run(protection.restraints(account, desk.clock()))).protected
    assert found == Protected(labels=frozenset({"taxes"}), label_ids={"Label_8": "taxes"})


async def test_a_label_is_protected_by_its_id_as_well_as_by_its_name(desk: Desk) -> None:
    account = (await desk.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", desk.clock()))).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user")]
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    assert await desk.database.run(protection.protect("label", "Label_7", "", signed(), desk.clock())) == "label_7"
    found = (await desk.database.run(protection.restraints(account, desk.clock()))).protected
    assert found.reason("x@y.example", frozenset({"Label_7"})) is not None


async def test_a_label_of_320_characters_is_the_longest_that_is_protected(desk: Desk) -> None:
    account = (await desk.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", desk.clock()))).id
    seen = [labels.SeenLabel(f"Label_{length}", "x" * length, "user") for length in (320, 321)]
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    await desk.database.run(protection.protect("label", "x" * 320, "", signed(), desk.clock()))
    with pytest.raises(BadInput, match="too long"):
        await desk.database.run(protection.protect("label", "x" * 321, "", signed(), desk.clock()))


async def test_a_protected_label_that_was_renamed_or_deleted_is_told(desk: Desk) -> None:
    account = (await desk.database.run(mail.keep_account(new_id(), "gmail", "gmail:a", "a@b.example", desk.clock()))).id
    seen = [labels.SeenLabel("Label_7", "Legal", "user"), labels.SeenLabel("Label_8", "Taxes", "user")]
    await desk.database.run(labels.sync_labels(account, seen, desk.clock()))
    for name in ("legal", "taxes"):
        await desk.database.run(protection.protect("label", name, "", signed(), desk.clock()))
    await desk.database.run(labels.sync_labels(account, [seen[0]._replace(name="Contracts")], desk.clock()))
    lost = [protection.LostProtection("legal", "Contracts"), protection.LostProtection("taxes", None)]
    assert await desk.database.run(protection.lost_protection()) == lost


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
async def test_what_is_protected_is_kept_as_it_is_compared(desk: Desk, kind: Any, given: str, kept: str) -> None:
    assert await desk.database.run(protection.protect(kind, given, "family", signed(), desk.clock())) == kept
    (view,) = await desk.database.run(protection.list_protected())
    assert (view.kind, view.value, view.reason, view.created_at) == (kind, kept, "family", desk.clock())
    found = await desk.database.run(protection.restraints(new_id(), desk.clock()))
    groups = {"sender": found.protected.senders, "domain": found.protected.domains, "label": found.protected.labels}
    assert groups.pop(kind) == {kept}
    assert not any(groups.values())
    assert await desk.database.run(protection.unprotect(kind, given.upper(), signed(), desk.clock()))
    assert await desk.database.run(protection.list_protected()) == []
    assert await actions_noted(desk) == ["protect", "unprotect"]


@pytest.mark.parametrize("kind", ["sender", "domain"])
@pytest.mark.parametrize("written", ["boss@bücher.example", "BOSS@XN--BCHER-KVA.EXAMPLE"])
async def test_a_sender_is_protected_however_its_domain_is_written(desk: Desk, kind: Any, written: str) -> None:
    given = written if kind == "sender" else written.rpartition("@")[2]
    await desk.database.run(protection.protect(kind, given, "", signed(), desk.clock()))
    found = await desk.database.run(protection.restraints(new_id(), desk.clock()))
    for sender in ("boss@bücher.example", "Boss@xn--bcher-kva.example"):
        assert found.protected.reason(sender, frozenset()) is not None
    assert found.protected.reason("boss@bucher.example", frozenset()) is None


async def test_to_protect_again_changes_the_reason_and_not_the_beginning(desk: Desk) -> None:
    begun = desk.clock()
    await desk.database.run(protection.protect("domain", "a.example", "first", signed(), begun))
    desk.clock.forward(60)
    await desk.database.run(protection.protect("domain", "A.example", "second", signed(), desk.clock()))
    (view,) = await desk.database.run(protection.list_protected())
    assert (view.reason, view.created_at) == ("second", begun)


async def test_what_was_not_protected_is_not_unprotected_and_nothing_is_noted(desk: Desk) -> None:
    before = await dump(desk.database)
    assert not await desk.database.run(protection.unprotect("label", "Old", signed(), desk.clock()))
    assert await dump(desk.database) == before


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
async def test_what_can_never_match_is_refused(desk: Desk, kind: Any, value: str) -> None:
    before = await dump(desk.database)
    with pytest.raises(BadInput) as refused:
        await desk.database.run(protection.protect(kind, value, "", signed(), desk.clock()))
    assert refused.value.field == kind
    assert await dump(desk.database) == before


# shadows


async def test_what_runs_in_shadow_begins_and_ends_once_and_both_are_noted(desk: Desk) -> None:
    run = desk.database.run
    assert await run(protection.begin_shadow("category", "newsletters", signed(), desk.clock()))
    assert not await run(protection.begin_shadow("category", "newsletters", signed(), desk.clock()))
    found = await run(protection.restraints(new_id(), desk.clock()))
    assert (found.shadowed_categories, found.model_in_shadow) == ({"newsletters"}, False)
    assert await run(protection.begin_shadow("model", "", signed(), desk.clock()))
    assert (await run(protection.restraints(new_id(), desk.clock()))).model_in_shadow
    assert await run(protection.end_shadow("category", "newsletters", signed(), desk.clock()))
    assert await actions_noted(desk) == ["shadow.begin", "shadow.begin", "shadow.end"]
    assert not await run(protection.end_shadow("category", "newsletters", signed(), desk.clock()))
    left = await run(protection.restraints(new_id(), desk.clock()))
    assert left == protection.Restraints(Protected(), frozenset(), True, 0)
    assert await actions_noted(desk) == ["shadow.begin", "shadow.begin", "shadow.end"]


async def test_whoever_listens_hears_that_a_pause_began_and_ended(desk: Desk) -> None:
    heard = await listen(desk.database, pauses.CHANNEL)
    await pause(desk)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == pauses.ALL
    await resume(desk)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == pauses.ALL
