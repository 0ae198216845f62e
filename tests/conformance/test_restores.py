"""A database that was set back notices it, and sends nothing that was sent since."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.mail.carrier import MarkedDraft, SentMail
from postroom.core.mail.restores import Doubt, RestoredWindow, SendRequest, doubt_about, is_from, source_key
from postroom.outbound.queue.restored import RestorePace, RestoreWatch, read_seen
from postroom.store.accounts import accounts
from postroom.store.actions import actions, pauses
from postroom.store.engine.ids import new_id
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.installation import prohibitions, restores, timeline
from postroom.store.outbound import outbound
from postroom.store.people import tokens
from postroom.store.rules import rules
from support.mailboxes import always
from support.store.fault_cases_outbound import NOBODY, admitted, lease, sending_job, stored, submitted
from support.store.fault_cases_registry import signed
from support.store.fault_cases_restores import forbidden, forbidding, observed, restored
from support.store.job_setup import JobSetup


class Mailbox:
    """What was sent from it, and what is still a draft there."""

    def __init__(self, sent: list[SentMail], drafts: list[MarkedDraft]) -> None:
        self.sent = sent
        self.drafts = drafts

    async def newest_sent(self) -> list[SentMail]:
        return self.sent

    async def sent_since(self, since: object) -> list[SentMail]:
        return self.sent

    async def marked_drafts(self) -> list[MarkedDraft]:
        return self.drafts


def watch(
    setup: JobSetup,
    folder: Path,
    mailbox: Mailbox | None = None,
    wake_snoozed: Callable[[UUID], Awaitable[object]] | None = None,
) -> RestoreWatch:
    found, pace = mailbox or Mailbox([], []), RestorePace(settle=timedelta(0))
    return RestoreWatch(setup.database, folder, always(found), pace, setup.clock, wake_snoozed=wake_snoozed)


async def states(setup: JobSetup) -> dict[UUID, str]:
    return {each.id: each.state for each in await setup.database.run(outbound.list_mail(100))}


async def test_nothing_leaves_a_mailbox_before_it_was_compared_with_the_restored_database(setup: JobSetup) -> None:
    about = await stored(setup)
    await admitted(setup, "forward", about)
    await restored(setup)
    assert await lease(setup) == []
    assert not await setup.database.run(outbound.any_mail_due(setup.clock()))


async def test_what_waited_in_the_backup_is_settled_by_what_the_mailbox_holds(setup: JobSetup, tmp_path: Path) -> None:
    about = await stored(setup)
    sent = await admitted(setup, "forward", about, "b@example.com")
    draft = await admitted(setup, "forward", about, "c@example.com")
    unsure = await admitted(setup, "forward", about, "d@example.com")
    await restored(setup)
    mailbox = Mailbox([SentMail("18c1", sent.id, None, setup.clock())], [MarkedDraft("r-1", "18c3", draft.id)])
    assert not await watch(setup, tmp_path, mailbox).compare_pending()
    assert await states(setup) == {sent.id: "sent", draft.id: "queued", unsure.id: "unknown"}
    done = {each.id: each for each in await setup.database.run(actions.list_actions(10))}
    assert sent.action_id is not None
    assert unsure.action_id is not None
    assert done[sent.action_id].state == "completed"
    assert "postroom outbound resolve" in (done[unsure.action_id].error or "")
    assert [each.draft_id for each in await lease(setup)] == ["r-1"]


async def test_what_a_person_asks_for_after_the_restore_is_sent(setup: JobSetup, tmp_path: Path) -> None:
    about = await stored(setup)
    await restored(setup)
    mailbox = Mailbox([SentMail("18c1", new_id(), "a-key", setup.clock())], [])
    await watch(setup, tmp_path, mailbox).compare_pending()
    setup.clock.forward(1)
    asked = await _admit_with_key(setup, about)
    assert await states(setup) == {asked: "queued"}


async def test_mail_of_the_backup_that_is_found_under_its_source_key_counts_once(
    setup: JobSetup, tmp_path: Path
) -> None:
    about = await stored(setup)
    first, second = await _admit_with_key(setup, about), await _admit_with_key(setup, about)
    await restored(setup)
    mailbox = Mailbox([SentMail("18c1", new_id(), "a-key", setup.clock())], [])
    await watch(setup, tmp_path, mailbox).compare_pending()
    assert await states(setup) == {first: "sent", second: "unknown"}


async def test_mail_without_an_action_is_asked_about_if_it_waited_and_sent_if_it_is_new(
    setup: JobSetup, tmp_path: Path
) -> None:
    about = await stored(setup)
    old = await submitted(setup, about)
    setup.clock.forward(60)
    await restored(setup)
    await watch(setup, tmp_path, Mailbox([], [])).compare_pending()
    setup.clock.forward(60)
    new = await submitted(setup, about)
    assert await states(setup) == {old.id: "unknown", new.id: "queued"}


async def _admit_with_key(setup: JobSetup, about: object) -> UUID:
    job, new = await sending_job(setup, "forward", about)  # type: ignore[arg-type]
    await setup.database.run(outbound.admit_mail(job, replace(new, source_key="a-key"), NOBODY, setup.clock()))
    return new.id


async def test_whom_an_automatic_reply_reached_since_the_backup_is_not_answered_again(
    setup: JobSetup, tmp_path: Path
) -> None:
    about = await stored(setup)
    await restored(setup)
    answered = SentMail("18c1", new_id(), None, setup.clock(), "a@example.com")
    await watch(setup, tmp_path, Mailbox([answered], [])).compare_pending()
    job, new = await sending_job(setup, "auto_reply", about)
    guard = NOBODY._replace(once_since=setup.clock() - timedelta(days=7))
    refused = await setup.database.run(outbound.admit_mail(job, new, guard, setup.clock()))
    assert "one answer is enough" in (refused or "")


async def test_a_database_that_is_older_than_its_folder_remembers_has_gone_back(
    setup: JobSetup, tmp_path: Path
) -> None:
    await stored(setup)
    first = watch(setup, tmp_path)
    for _ in range(3):
        assert (await first.observe()).noticed_by is None
    seen = read_seen(tmp_path / "timeline.json")
    assert seen is not None
    assert seen.ticks == 3
    older = seen._replace(ticks=9)
    place = await timeline.place_of(setup.database)
    found = await setup.database.run(timeline.observe_timeline(new_id(), place, older, signed(), setup.clock()))
    assert (found.noticed_by, found.epoch, found.ticks) == ("ticks", 2, 10)
    assert len(await setup.database.run(restores.pending_checks())) == 1


async def test_a_database_in_another_place_has_been_copied(setup: JobSetup) -> None:
    await observed(setup)
    assert (await observed(setup)).noticed_by is None
    found = await observed(setup, "file 2")
    assert (found.noticed_by, found.epoch) == ("place", 2)
    assert (await observed(setup, "file 2")).noticed_by is None


@pytest.mark.parametrize(
    ("place", "is_replicated", "lacks", "noticed_by"),
    [
        ("server 7 history 00000002 database 5", True, False, None),
        ("server 7 history 0000000B database 5", True, False, None),
        ("server 7 history 00000002 database 5", False, False, "place"),
        ("server 7 history 00000002 database 5", True, True, "place"),
        ("server 7 history 00000000 database 5", True, False, "place"),
        ("server 7 history 00000002 database 6", True, False, "place"),
        ("server 8 history 00000002 database 5", True, False, "place"),
        ("server 7 history - database 5", True, False, "place"),
    ],
)
async def test_only_a_standby_that_has_all_that_was_acknowledged_is_told_from_a_restore(
    postgres_setup: JobSetup, place: str, is_replicated: bool, lacks: bool, noticed_by: str | None
) -> None:
    setup = postgres_setup
    assert isinstance(setup.database, PostgresDatabase)
    about = await stored(setup)
    waiting = await admitted(setup, "forward", about)
    before = timeline.DatabasePlace("server 7 history 00000001 database 5", is_replicated)
    begun = await setup.database.run(timeline.observe_timeline(new_id(), before, None, signed(), setup.clock()))
    acknowledged = [*setup.database.acknowledged, *([new_id()] if lacks else [])]
    assert acknowledged
    again = timeline.observe_timeline(
        new_id(), timeline.DatabasePlace(place), begun.seen, signed(), setup.clock.forward(60), acknowledged
    )
    found = await setup.database.run(again)
    assert (found.noticed_by, found.is_promoted) == (noticed_by, noticed_by is None)
    assert len(await setup.database.run(restores.pending_checks())) == (noticed_by is not None)
    assert (await states(setup))[waiting.id] == "queued"


async def test_a_standby_whose_count_is_behind_the_folders_is_a_restore(postgres_setup: JobSetup) -> None:
    before, after = (timeline.DatabasePlace(f"server 7 history 0000000{n} database 5", True) for n in (1, 2))
    run = postgres_setup.database.run
    begun = await run(timeline.observe_timeline(new_id(), before, None, signed(), postgres_setup.clock()))
    ahead = begun.seen._replace(ticks=9)
    found = await run(timeline.observe_timeline(new_id(), after, ahead, signed(), postgres_setup.clock()))
    assert (found.noticed_by, found.is_promoted) == ("ticks", False)


async def test_a_new_host_and_one_that_slept_through_a_restore_notice_nothing(setup: JobSetup) -> None:
    begun = await observed(setup)
    await observed(setup, "file 2")
    seen = begun.seen._replace(ticks=1_000)
    again = timeline.observe_timeline(new_id(), timeline.DatabasePlace("file 2"), seen, signed(), setup.clock())
    assert (await setup.database.run(again)).noticed_by is None


async def test_sent_mail_of_ours_that_the_database_does_not_know_means_that_it_was_restored(
    setup: JobSetup, tmp_path: Path
) -> None:
    about = await stored(setup)
    begun = await watch(setup, tmp_path).observe()
    key = source_key(begun.instance_id, "a@example.com", "18c0", "forward", ["b@example.com"])
    stranger = source_key(new_id(), "a@example.com", "18c0", "forward", ["b@example.com"])
    assert is_from(begun.instance_id, key)
    other = Mailbox([SentMail("18c1", new_id(), stranger, setup.clock())], [])
    await watch(setup, tmp_path, other).before_sending(about.account_id)
    ours = Mailbox([SentMail("18c1", new_id(), key, setup.clock())], [])
    with pytest.raises(Exception, match="ahead of the database"):
        await watch(setup, tmp_path, ours).before_sending(about.account_id)
    assert len(await setup.database.run(restores.pending_checks())) == 1
    await watch(setup, tmp_path, ours).compare_pending()
    await watch(setup, tmp_path, ours).before_sending(about.account_id)


async def test_snoozed_mail_is_looked_for_until_that_succeeds(setup: JobSetup, tmp_path: Path) -> None:
    about = await stored(setup)
    await restored(setup)
    swept: list[UUID] = []

    async def sweep(account_id: UUID) -> None:
        swept.append(account_id)
        if len(swept) == 1:
            raise OSError("the mailbox did not answer")

    watching = watch(setup, tmp_path, wake_snoozed=sweep)
    assert await watching.compare_pending(), "one is left"
    assert not await watching.compare_pending()
    assert not await watching.compare_pending()
    assert swept == [about.account_id] * 2


async def test_doubt_depends_on_who_asked_when_and_when_the_message_came(setup: JobSetup) -> None:
    since = setup.clock()
    window = RestoredWindow(since, since + timedelta(hours=2))
    before, within, after = since - timedelta(days=1), since + timedelta(hours=1), since + timedelta(hours=3)

    def doubt(actor: str, asked_at: object, received_at: object, first: bool = True) -> Doubt:
        return doubt_about(SendRequest(actor, asked_at, first, received_at), window)  # type: ignore[arg-type]

    assert doubt("user", before, before) is Doubt.LIKELY
    assert doubt("user", after, before) is Doubt.NONE
    assert doubt("rule", after, after) is Doubt.NONE
    assert doubt("rule", after, within) is Doubt.LIKELY
    assert doubt("rule", after, before) is Doubt.LIKELY
    assert doubt("rule", after, before, first=False) is Doubt.POSSIBLE
    assert doubt("agent", after, within) is Doubt.LIKELY


async def test_what_the_replaced_database_forbids_is_forbidden_in_the_restored_one(setup: JobSetup) -> None:
    here = await forbidding(setup)
    replaced = await forbidden(setup, here)
    carried = await setup.database.run(prohibitions.begin_paused(replaced, setup.clock(), signed(), setup.clock()))
    assert carried == prohibitions.Carried(pauses=2, protected=1, shadows=1, tokens=1, accounts=1, rules=4)
    found = await setup.database.run(prohibitions.load_prohibitions())
    reasons = {each.scope: each.reason for each in found.pauses}
    assert set(reasons) == {"all", str(here.account_id)}
    assert "restored from a backup of 2026-11-15" in reasons["all"]
    assert "stop it all" in reasons["all"]
    assert [each.value for each in found.protected] == ["ann@example.org"]
    assert found.protected_labels == [("family", here.account_id, "Label_1")]
    assert found.shadows == [("model", "model")]
    (token,) = await setup.database.run(tokens.list_tokens())
    assert token.revoked_at is not None
    (account,) = await setup.database.run(accounts.list_accounts())
    assert (account.state, account.state_reason) == ("paused", "on leave")
    enabled = {each.id: each.disabled_reason for each in await setup.database.run(rules.list_rules())}
    assert [enabled[id] for id in here.rule_ids] == [
        None,
        "too eager",
        "it was put in shadow after the backup",
        "it was made to ask for approval after the backup",
        "it was removed after the backup",
    ]


async def test_an_account_that_was_removed_after_the_backup_is_removed_again(setup: JobSetup) -> None:
    here = await forbidding(setup)
    found = await setup.database.run(prohibitions.load_prohibitions())
    removed = replace(found.accounts[here.account_id], state="removed")
    replaced = replace(found, accounts={removed.id: removed})
    await setup.database.run(prohibitions.begin_paused(replaced, setup.clock(), signed(), setup.clock()))
    (account,) = await setup.database.run(accounts.list_accounts())
    assert account.state == "removed"


async def test_the_rules_of_a_backup_are_not_missing_in_another_installation(setup: JobSetup) -> None:
    """A machine on which something was tried before the backup was put there."""
    await forbidding(setup)
    found = await setup.database.run(prohibitions.load_prohibitions())
    other = replace(found, instance_id=new_id(), rules={}, accounts={})
    carried = await setup.database.run(prohibitions.begin_paused(other, setup.clock(), signed(), setup.clock()))
    assert carried == prohibitions.Carried()


async def test_a_restored_database_is_paused_also_when_nothing_was_there_before(setup: JobSetup) -> None:
    await setup.database.run(prohibitions.begin_paused(None, setup.clock(), signed(), setup.clock()))
    await setup.database.run(prohibitions.begin_paused(None, setup.clock(), signed(), setup.clock()))
    (pause,) = await setup.database.run(pauses.standing_pauses())
    assert (pause.scope, pause.reason) == ("all", "the database was restored from a backup of 2026-11-15 08:00 UTC")
