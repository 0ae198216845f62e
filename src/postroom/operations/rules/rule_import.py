"""An import in steps, as a page does it: read a file and see what comes over, then keep it, off, then enable it."""

import asyncio
from dataclasses import dataclass, replace

from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.exchange import IMPORTED, Verdict
from postroom.core.rules.in_words import conditions_in_words
from postroom.operations.caller import Caller
from postroom.operations.rules.rule_exchange import RuleFormat, import_rules, import_table, read_rules
from postroom.store.engine.database import Database
from postroom.words.actions import rule_does

LARGEST = 1024 * 1024
LARGEST_YAML = 256 * 1024  # takes some seconds to parse


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A part of the file: what became of it and why, and what its rule does, in words."""

    where: str
    name: str
    verdict: Verdict
    why: str
    when: str = ""
    does: str = ""
    result: str = ""
    """The result: `added`, or `left as it is` if there was a rule of this name; empty before."""


@dataclass(frozen=True, slots=True)
class ReadImport:
    """The rules in a file, all off, and a row for each part of it."""

    drafts: tuple[RuleDraft, ...]
    rows: tuple[ImportRow, ...]
    is_kept: bool = False

    @property
    def added(self) -> list[str]:
        return [row.name for row in self.rows if row.result == "added"]

    @property
    def harmless(self) -> list[str]:
        """The added rules whose actions can be undone: they may be enabled together."""
        reviewed = {draft.name for draft in self.drafts if draft.is_reviewed}
        return [name for name in self.added if name not in reviewed]


async def read_import(database: Database, content: bytes, format: RuleFormat) -> ReadImport:
    """Read a file. Nothing is changed. Raises BadInput, which names the place."""
    largest = LARGEST_YAML if format == "yaml" else LARGEST
    if len(content) > largest:
        raise BadInput("file", f"is larger than {largest // 1024} KiB", "divide it, or use `postroom rules import`")
    # In a thread: a large file takes seconds to parse.
    imported = await asyncio.to_thread(read_rules, content, format)
    drafts = {draft.name: draft.for_review(IMPORTED) if draft.enabled else draft for draft in imported.drafts}
    rows = [
        ImportRow(each.where, each.what, each.verdict, each.why, *_words(drafts.get(each.what)))
        for each in await import_table(database, imported)
    ]
    return ReadImport(tuple(drafts.values()), tuple(rows))


async def keep_import(by: Caller, found: ReadImport) -> ReadImport:
    """Add the rules, off. Rules whose names exist are left as they are."""
    kept = {each.name: each.result for each in await import_rules(by, found.drafts)}
    rows = [row if row.verdict == "refused" else replace(row, result=kept.get(row.name, "")) for row in found.rows]
    return replace(found, rows=tuple(rows), is_kept=True)


def _words(draft: RuleDraft | None) -> tuple[str, str]:
    if draft is None:
        return "", ""
    return conditions_in_words(draft.conditions), rule_does(draft.action_type, draft.parameters)
