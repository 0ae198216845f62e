"""Import and export rules: YAML, JSON, Gmail filters and Sieve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from postroom.core.rules.documents import read_documents, write_documents
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import Exported, Imported, LeftOut
from postroom.core.rules.gmail import read_gmail_filters, write_gmail_filters
from postroom.core.rules.sieve import read_sieve_rules, write_sieve_rules
from postroom.manage.database import prepare
from postroom.manage.rules import first_unknown_label, known_labels, list_rules, with_resolved_scopes
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import KeptRules, keep_rules

__all__ = ["Imported", "ImportedRule", "LeftOut", "RuleFormat", "export_rules", "import_rules", "read_rules"]

RuleFormat = Literal["yaml", "json", "gmail", "sieve"]


@dataclass(frozen=True, slots=True)
class ImportedRule:
    """The result for one rule."""

    name: str
    result: str
    enabled: bool
    disabled_reason: str | None


def read_rules(content: bytes, format: RuleFormat) -> Imported:
    """Read the rules in a file, and what could not be translated. Raise UnicodeDecodeError if it is not UTF-8."""
    match format:
        case "gmail":
            return read_gmail_filters(content)
        case "sieve":
            return read_sieve_rules(content.decode("utf-8-sig"))
        case "yaml" | "json":
            return Imported(read_documents(content.decode("utf-8-sig")))


async def import_rules(
    database: Database,
    drafts: Sequence[RuleDraft],
    signed: Signature,
    *,
    replace_known: bool = False,
    allow_missing: bool = False,
    dry_run: bool = False,
    clock: Clock = wall_clock,
) -> list[ImportedRule]:
    """Import rules, all or none. Existing rules of the same names are left as they are, or replaced.

    Rules whose actions cannot be undone, and rules with conditions on unknown labels, are imported disabled.
    """
    await prepare(database)
    found = await with_resolved_scopes(database, drafts)
    known = None if allow_missing else await known_labels(database)
    found = [_reviewed(draft, known) for draft in found]
    kept = None
    if found and not dry_run:
        rules = [(new_id(), draft) for draft in found]
        names = "replace" if replace_known else "skip"
        kept = await database.run(keep_rules(rules, names, "import", signed, clock()))
    return [ImportedRule(each.name, _result(each.name, kept), each.enabled, each.disabled_reason) for each in found]


async def export_rules(database: Database, format: RuleFormat) -> Exported:
    """Write all rules as text, and list what the format cannot express."""
    drafts = [view.draft for view in await list_rules(database)]
    match format:
        case "gmail":
            return write_gmail_filters(drafts)
        case "sieve":
            return write_sieve_rules(drafts)
        case "yaml" | "json":
            return Exported(write_documents(drafts, format), [])


def _reviewed(draft: RuleDraft, known: frozenset[str] | None) -> RuleDraft:
    """Disable the rule if a person has to review it first."""
    if draft.enabled and draft.is_reviewed:
        return draft.for_review()
    missing = first_unknown_label(draft, known)
    return draft.for_review(f"no mailbox has the label {missing!r}") if draft.enabled and missing else draft


def _result(name: str, kept: KeptRules | None) -> str:
    if kept is None:
        return "would come in"
    if name in kept.added:
        return "added"
    return "replaced" if name in kept.replaced else "left as it is"
