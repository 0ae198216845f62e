"""For each writing verb of restores: a database in which it has something to do."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.mail.carrier import MarkedDraft, SentMail
from postroom.core.roles import Role
from postroom.core.rules.draft import RuleDraft
from postroom.store.actions import pauses, protection
from postroom.store.actions import snooze_wakes as wakings
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation import program_versions, prohibitions, restores, stored_settings, timeline
from postroom.store.people import tokens
from postroom.store.rules import rules
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_outbound import SENDER, admitted, stored
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


async def observed(setup: JobSetup, place: str = "file 1") -> timeline.Timeline:
    return await setup.database.run(
        timeline.observe_timeline(new_id(), timeline.DatabasePlace(place), None, signed(), setup.clock())
    )


async def restored(setup: JobSetup) -> restores.PendingCheck:
    """A mailbox that has to be compared: the database was found in another place."""
    await observed(setup)
    setup.clock.forward(3600)
    assert (await observed(setup, "file 2")).noticed_by == "place"
    (check,) = await setup.database.run(restores.pending_checks())
    return check


async def observe_timeline(setup: JobSetup) -> Transaction[Any]:
    await stored(setup)
    await observed(setup)
    return timeline.observe_timeline(
        new_id(), timeline.DatabasePlace("file 2"), None, signed(), setup.clock.forward(60)
    )


async def mark_restored(setup: JobSetup) -> Transaction[Any]:
    await stored(setup)
    seen = timeline.Seen(new_id(), 4, 9)
    return timeline.mark_restored(
        new_id(), timeline.DatabasePlace("file 2"), seen, setup.clock(), signed(), setup.clock.forward(60)
    )


async def suspect_restore(setup: JobSetup) -> Transaction[Any]:
    await stored(setup)
    await observed(setup)
    return timeline.suspect_restore(signed(), setup.clock.forward(60))


async def settle_restored(setup: JobSetup) -> Transaction[Any]:
    """One that was sent, one that is a draft, one of which nobody knows, and one that the database knew nothing of."""
    about = await stored(setup)
    sent = await admitted(setup, "forward", about, "b@example.com")
    draft = await admitted(setup, "forward", about, "c@example.com")
    await admitted(setup, "forward", about, "d@example.com")
    check = await restored(setup)
    now = setup.clock.forward(60)
    found = [
        SentMail("18c1", sent.id, None, now),
        SentMail("18c2", new_id(), "a-key", now - timedelta(minutes=1), SENDER),
    ]
    drafts = [MarkedDraft("r-1", "18c3", draft.id)]
    return restores.settle_restored(check, found, drafts, new_id(), signed(), now)


async def begin_paused(setup: JobSetup) -> Transaction[Any]:
    """A replaced database that has forbidden one of everything since the backup."""
    here = await forbidding(setup)
    return prohibitions.begin_paused(await forbidden(setup, here), setup.clock(), signed(), setup.clock.forward(60))


class Permitted(NamedTuple):
    """What a backup allows, by ids."""

    account_id: UUID
    token_id: UUID
    rule_ids: list[UUID]


async def forbidding(setup: JobSetup) -> Permitted:
    """A database in which nothing is forbidden."""
    account_id = (await stored(setup)).account_id
    minted = tokens.mint(Role.ADMIN).token
    await setup.database.run(tokens.create_token(minted, signed(), setup.clock()))
    rule_ids = [new_id() for _ in range(5)]
    wanted = {"subject_contains": "x"}
    new = [(id, RuleDraft(f"rule {n}", wanted, "archive", {})) for n, id in enumerate(rule_ids)]
    await setup.database.run(rules.add_rules(new, setup.clock()))
    await observed(setup)
    return Permitted(account_id, minted.id, rule_ids)


async def forbidden(setup: JobSetup, permitted: Permitted) -> prohibitions.Prohibitions:
    """The same database, of which the owner has since forbidden one of everything."""
    found = await setup.database.run(prohibitions.load_prohibitions())
    now, (kept, disabled, shadowed, asking, _removed) = setup.clock(), permitted.rule_ids
    changes: dict[UUID, dict[str, Any]] = {
        kept: {},
        disabled: {"enabled": False, "disabled_reason": "too eager"},
        shadowed: {"mode": "shadow"},
        asking: {"needs_approval": True},
    }
    account = found.accounts[permitted.account_id]
    return replace(
        found,
        pauses=[
            pauses.Pause("all", "stop it all", "owner", now),
            pauses.Pause(str(permitted.account_id), "leave this one", "owner", now),
            pauses.Pause(str(new_id()), "an account that the backup does not have", "owner", now),
        ],
        protected=[protection.ProtectedView("sender", "ann@example.org", "", now)],
        protected_labels=[("family", permitted.account_id, "Label_1"), ("family", new_id(), "Label_2")],
        shadows=[("model", "model")],
        revoked_tokens=frozenset({permitted.token_id, new_id()}),
        accounts={account.id: replace(account, state="paused", state_reason="on leave")},
        rules={id: replace(found.rules[id], **change) for id, change in changes.items()},
    )


async def wake_overdue_snoozes(setup: JobSetup) -> Transaction[Any]:
    account_id = (await stored(setup)).account_id
    return wakings.wake_overdue_snoozes(account_id, ["18c0", "18c9"], "Label_1", setup.clock())


async def record_version(setup: JobSetup) -> Transaction[Any]:
    await stored(setup)
    return program_versions.record_version("0.2.0", setup.clock())


async def store_setting(setup: JobSetup) -> Transaction[Any]:
    return stored_settings.store_setting("safety.approval_hours", 48, 24, signed(), setup.clock())


async def forget_setting(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await store_setting(setup))
    return stored_settings.forget_setting("safety.approval_hours", 24, signed(), setup.clock())


CASES: list[Case] = [
    store_setting,
    forget_setting,
    record_version,
    wake_overdue_snoozes,
    begin_paused,
    observe_timeline,
    mark_restored,
    suspect_restore,
    settle_restored,
]
