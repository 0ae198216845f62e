"""How long mail is kept: what would be pruned, pruning it now, and approving that it is pruned every day."""

from collections.abc import Mapping
from dataclasses import dataclass

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.retention import RetentionPolicy
from postroom.operations.caller import Caller
from postroom.operations.nouns import MAIL
from postroom.operations.operation import command, dialogue
from postroom.store.engine.database import Database
from postroom.store.mail import retention as store
from postroom.store.mail.retention import PruneCounts as PruneCounts
from postroom.store.mail.retention import RetentionApproval, RetentionRun
from postroom.triage.act.retention import Retention, RetentionPreview

MOST_RUNS = 100
ONLY_OURS = "Only Postroom's copy is pruned: mail in the mailbox itself is never touched."


@dataclass(frozen=True, slots=True)
class RetentionStatus:
    """The settings in effect, whether mail is pruned under them every day, and the last runs, newest first."""

    policy: RetentionPolicy
    approval: RetentionApproval | None
    runs: list[RetentionRun]

    @property
    def is_enabled(self) -> bool:
        return self.approval is not None and self.approval.policy == self.policy.as_json()

    @property
    def was_previewed(self) -> bool:
        return any(each.policy == self.policy.as_json() for each in self.runs)


@dataclass(frozen=True, slots=True)
class RetentionChange:
    """The outcome of enabling or disabling that mail is pruned every day."""

    result: str
    name: str = "retention"


def kept_times(policy: RetentionPolicy) -> Mapping[str, object]:
    """How long mail is kept under these settings, in words."""
    own = {f"category_{name}": _days(count) for name, count in sorted(policy.categories.items())}
    return {"full": _days(policy.full_days), "metadata": _days(policy.metadata_days), **own}


def _days(count: int) -> str:
    return f"{count} days" if count else "for good"


def _row(found: RetentionStatus) -> Mapping[str, object]:
    last = next((each for each in found.runs if not each.is_dry), None)
    return {
        **kept_times(found.policy),
        "pruned_every_day": found.is_enabled,
        "previewed": found.was_previewed,
        "last_pruned_at": None if last is None else last.ended_at,
        "last_pruned_messages": None if last is None else last.messages,
    }


def _next_step(found: RetentionStatus) -> str:
    if found.policy.shortest is None or found.is_enabled:
        return ONLY_OURS
    step = "enable" if found.was_previewed else "preview"
    return f"Nothing is pruned automatically under these settings: see `postroom retention {step}`.\n\n{ONLY_OURS}"


@MAIL.operation(READ, command("retention show", row=_row, below=_next_step))
async def status(database: Database, policy: RetentionPolicy, /) -> RetentionStatus:
    """Show the settings in effect, and whether mail is pruned under them every day."""
    approval = await database.run(store.retention_approval())
    return RetentionStatus(policy, approval, await database.run(store.list_runs(MOST_RUNS)))


@MAIL.operation(OPERATE, command("retention preview"))
async def preview(by: Caller, policy: RetentionPolicy, /) -> RetentionPreview:
    """Show what would be pruned now, and change nothing. The counts are recorded; the samples are only shown."""
    return await Retention(by.database, policy, by.clock).preview(by.signature.actor)


@MAIL.operation(OPERATE, dialogue("retention prune"))
async def prune(by: Caller, policy: RetentionPolicy, /) -> PruneCounts:
    """Prune now. Raises BadInput unless a dry run with the same settings came before."""
    await _check_previewed(by.database, policy)
    return await Retention(by.database, policy, by.clock).prune(by.signature)


@MAIL.operation(OPERATE, dialogue("retention enable"))
async def enable(by: Caller, policy: RetentionPolicy, /) -> RetentionChange:
    """Prune every day under these settings. Raises BadInput unless a dry run with the same settings came before."""
    await _check_previewed(by.database, policy)
    await by.run(store.approve_retention(policy.as_json(), by.signature, by.clock()))
    return RetentionChange(f"mail is pruned every day now. {ONLY_OURS}")


@MAIL.operation(OPERATE, command("retention disable", line="{name}  {result}"))
async def disable(by: Caller, /) -> RetentionChange:
    """Prune nothing automatically any more."""
    ended = await by.run(store.withdraw_retention(by.signature, by.clock()))
    return RetentionChange("nothing is pruned automatically now" if ended else "was not enabled")


async def _check_previewed(database: Database, policy: RetentionPolicy) -> None:
    if policy.shortest is None:
        remedy = "set `retention.full_days`, `retention.metadata_days` or `retention.categories` first"
        raise BadInput("retention", "keeps everything for good, so there is nothing to prune", remedy)
    if not (await status(database, policy)).was_previewed:
        remedy = "run `postroom retention preview`, and look at what would go"
        raise BadInput("retention", "was never tried with these settings", remedy)
