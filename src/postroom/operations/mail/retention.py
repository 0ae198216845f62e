"""How long mail is kept: what would be pruned, pruning it now, and approving that it is pruned every day."""

from dataclasses import dataclass

from postroom.core.errors import BadInput
from postroom.core.mail.retention import RetentionPolicy
from postroom.operations.caller import Caller
from postroom.store.engine.database import Database
from postroom.store.mail import retention as store
from postroom.store.mail.retention import PruneCounts, RetentionApproval, RetentionRun
from postroom.triage.act.retention import Retention, RetentionPreview

__all__ = [
    "PruneCounts",
    "RetentionPolicy",
    "RetentionPreview",
    "RetentionStatus",
    "disable",
    "enable",
    "preview",
    "prune",
    "status",
]

MOST_RUNS = 100


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


async def status(database: Database, policy: RetentionPolicy) -> RetentionStatus:
    approval = await database.run(store.retention_approval())
    return RetentionStatus(policy, approval, await database.run(store.list_runs(MOST_RUNS)))


async def preview(by: Caller, policy: RetentionPolicy) -> RetentionPreview:
    """Find what would be pruned now, and record that these settings were tried."""
    return await Retention(by.database, policy, by.clock).preview(by.signature.actor)


async def prune(by: Caller, policy: RetentionPolicy) -> PruneCounts:
    """Prune now. Raises BadInput unless a dry run with the same settings came before."""
    await _check_previewed(by.database, policy)
    return await Retention(by.database, policy, by.clock).prune(by.signature)


async def enable(by: Caller, policy: RetentionPolicy) -> None:
    """Prune every day under these settings. Raises BadInput unless a dry run with the same settings came before."""
    await _check_previewed(by.database, policy)
    await by.run(store.approve_retention(policy.as_json(), by.signature, by.clock()))


async def disable(by: Caller) -> bool:
    """Prune nothing automatically any more. False if nothing was."""
    return await by.run(store.withdraw_retention(by.signature, by.clock()))


async def _check_previewed(database: Database, policy: RetentionPolicy) -> None:
    if policy.shortest is None:
        remedy = "set `retention.full_days`, `retention.metadata_days` or `retention.categories` first"
        raise BadInput("retention", "keeps everything for good, so there is nothing to prune", remedy)
    if not (await status(database, policy)).was_previewed:
        remedy = "run `postroom retention preview`, and look at what would go"
        raise BadInput("retention", "was never tried with these settings", remedy)
