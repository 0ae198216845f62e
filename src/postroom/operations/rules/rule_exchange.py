"""Import and export rules: YAML, JSON, Gmail filters and Sieve."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.rules.documents import read_documents, write_documents
from postroom.core.rules.draft import REVIEW, RuleDraft
from postroom.core.rules.exchange import FIRST_PRIORITY, Came, Exported, Imported
from postroom.core.rules.gmail import read_gmail_filters
from postroom.core.rules.gmail_writing import write_gmail_filters
from postroom.core.rules.sieve import read_sieve_rules
from postroom.core.rules.sieve_syntax import LARGEST_SCRIPT
from postroom.core.rules.sieve_writing import write_sieve_rules
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import RULES
from postroom.operations.operation import dialogue, flow
from postroom.operations.rules.rules import (
    first_unknown_label,
    known_labels,
    list_rules,
    switch_rule,
    with_resolved_scopes,
)
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules.rules import KeptRules, keep_rules

RuleFormat = Literal["yaml", "json", "gmail", "sieve"]
# Rules in these formats are translated, so a person has to look at them before they act.
FOREIGN: frozenset[RuleFormat] = frozenset({"gmail", "sieve"})
ENDINGS: dict[str, RuleFormat] = {
    ".xml": "gmail",
    ".sieve": "sieve",
    ".siv": "sieve",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
}


@dataclass(frozen=True, slots=True)
class ImportedRule:
    """The result for one rule."""

    name: str
    result: str
    enabled: bool
    disabled_reason: str | None


def format_of(name: str, content: bytes) -> RuleFormat:
    """Tell the format by the name of the file, or else by how it begins."""
    for ending, format in ENDINGS.items():
        if name.lower().endswith(ending):
            return format
    head = content[:2000].lstrip()
    if head.startswith(b"<"):
        return "gmail"
    if head.startswith((b"{", b"[")):
        return "json"
    return "sieve" if head.startswith((b"require", b"#", b"/*", b"if ", b"if\n")) and b";" in content else "yaml"


def read_rules(content: bytes, format: RuleFormat) -> Imported:
    """Read the rules in a file, and what could not be translated. Raise BadInput, which names the place."""
    match format:
        case "gmail":
            return read_gmail_filters(content)
        case "sieve":
            if len(content) > LARGEST_SCRIPT:
                raise BadInput("script", "is larger than 1 MiB", "divide it")
            return read_sieve_rules(_text(content))
        case "yaml" | "json":
            return Imported(read_documents(_text(content)))


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(f"line {line}", "is not UTF-8", "save the file as UTF-8") from None


@RULES.operation(
    OPERATE,
    flow("/rules/import/read"),
    flow("/rules/import/keep"),
    flow("/rules/import/enable"),
    dialogue("rules import"),
)
async def import_rules(
    by: Caller,
    /,
    drafts: Sequence[RuleDraft],
    *,
    replace_known: bool = False,
    allow_missing: bool = False,
    enable: bool = False,
    dry_run: bool = False,
) -> list[ImportedRule]:
    """Import rules, all or none. Existing rules of the same names are left as they are, or replaced.

    With `enable`, rules that wait for a review are enabled. Rules whose actions cannot be undone, and rules with
    conditions on unknown labels, are imported disabled in any case.
    """
    await prepare(by.database)
    found = await with_resolved_scopes(by.database, drafts)
    known = None if allow_missing else await known_labels(by.database)
    found = [_disable_for_review(enabled_draft(draft) if enable else draft, known) for draft in found]
    kept = None
    if found and not dry_run:
        rules = [(new_id(), draft) for draft in found]
        names = "replace" if replace_known else "skip"
        kept = await by.run(keep_rules(rules, names, "import", by.signature, by.clock()))
    return [ImportedRule(each.name, _result(each.name, kept), each.enabled, each.disabled_reason) for each in found]


def enabled_draft(draft: RuleDraft) -> RuleDraft:
    """The rule without waiting for a review, unless what it does cannot be undone."""
    if draft.is_reviewed:
        return replace(draft, enabled=False, disabled_reason=f"it cannot be undone; {REVIEW}")
    return replace(draft, enabled=True, disabled_reason=None)


async def import_table(database: Database, imported: Imported) -> list[Came]:
    """The result for each part of a file, given the rules that there are before the imported ones."""
    await prepare(database)
    new = {draft.name for draft in imported.drafts}
    stored = [view for view in await list_rules(database) if view.name not in new]
    return imported.report([view.draft for view in stored if view.rule.priority <= FIRST_PRIORITY])


async def enable_rules(by: Caller, names: Sequence[str]) -> int:
    """Enable these rules, each with its own entry in the audit log; return how many. Safe to repeat."""
    for name in names:
        await switch_rule(by.again(), name, True)
    return len(names)


@RULES.operation(READ, dialogue("rules export"))
async def export_rules(database: Database, /, format: RuleFormat) -> Exported:
    """Write all rules as text, and list what the format cannot express."""
    drafts = [view.draft for view in await list_rules(database)]
    match format:
        case "gmail":
            return write_gmail_filters(drafts)
        case "sieve":
            return write_sieve_rules(drafts)
        case "yaml" | "json":
            return Exported(write_documents(drafts, format), [])


def _disable_for_review(draft: RuleDraft, known: frozenset[str] | None) -> RuleDraft:
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
