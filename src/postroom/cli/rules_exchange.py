"""`postroom rules import` and `postroom rules export`: YAML, JSON, Gmail's filters and Sieve."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, settings_for
from postroom.cli.output import cell, show_json
from postroom.cli.rule_places import AllowMissing, changing, known_labels, placed, read_bytes, read_text
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.core.rules.documents import DocumentFormat
    from postroom.core.rules.draft import RuleDraft
    from postroom.core.rules.exchange import Exported, Imported, LeftOut
    from postroom.store.engine.database import Database
    from postroom.store.rules import KeptRules

FORMATS = ("yaml", "json", "gmail", "sieve")
ENDINGS = {".xml": "gmail", ".sieve": "sieve", ".siv": "sieve", ".json": "json"}


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rules in YAML or JSON, mailFilters.xml, or Sieve.")],
    format: Annotated[
        str | None, typer.Option("--format", help="yaml, json, gmail or sieve; told by the file's name otherwise.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come in, and change nothing.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--replace", help="Put rules in the place of those that have their names.")
    ] = False,
    allow_missing: AllowMissing = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Take rules in, all or none, and tell what could not be translated.

    Rules whose names are there already are left as they are. Rules that forward, delete or answer come in disabled:
    look at them, and switch them on with `postroom rules enable`.
    """
    imported = _read(file, _format(format, file))

    async def importing(database: "Database") -> "tuple[list[RuleDraft], KeptRules | None]":
        from postroom.store.engine.ids import new_id
        from postroom.store.rules import keep_rules

        drafts = await placed(database, imported.drafts)
        drafts = _reviewed(drafts, None if allow_missing else await known_labels(database))
        if dry_run or not drafts:
            return drafts, None
        rules = [(new_id(), draft) for draft in drafts]
        known = "replace" if overwrite else "skip"
        return drafts, await database.run(keep_rules(rules, known, "import", operator_signature(), datetime.now(UTC)))

    drafts, kept = changing(context, data_dir, importing)
    for draft in drafts:
        _tell(draft, _result(draft.name, kept), as_json)
    _tell_left_out(imported.left_out, as_json)


def _format(given: str | None, file: Path) -> str:
    if given is not None and given not in FORMATS:
        raise BadInput("--format", f"{given!r} is unknown", f"use one of {', '.join(FORMATS)}")
    return given or ENDINGS.get(file.suffix.lower(), "yaml")


def _read(file: Path, format: str) -> "Imported":
    from postroom.core.rules.documents import read_documents
    from postroom.core.rules.exchange import Imported
    from postroom.core.rules.gmail import read_gmail_filters
    from postroom.core.rules.sieve import read_sieve_rules

    match format:
        case "gmail":
            return read_gmail_filters(read_bytes(file))
        case "sieve":
            return read_sieve_rules(read_text(file))
        case _:
            return Imported(read_documents(read_text(file)))


def _reviewed(drafts: "Sequence[RuleDraft]", known: frozenset[str] | None) -> "list[RuleDraft]":
    """What cannot be taken back, and what looks at labels that are not there, waits for a person."""
    from postroom.core.rules.draft import REVIEWED, unknown_labels

    found: list[RuleDraft] = []
    for draft in drafts:
        missing = sorted(unknown_labels(draft, known)) if known is not None else []
        if draft.enabled and draft.action_type in REVIEWED:
            found.append(draft.for_review())
        elif draft.enabled and missing:
            found.append(draft.for_review(f"no mailbox has the label {missing[0]!r}"))
        else:
            found.append(draft)
    return found


def _result(name: str, kept: "KeptRules | None") -> str:
    if kept is None:
        return "would come in"
    if name in kept.added:
        return "added"
    return "replaced" if name in kept.replaced else "left as it is"


def _tell(draft: "RuleDraft", result: str, as_json: bool) -> None:
    if as_json:
        row = {"name": draft.name, "result": result, "enabled": draft.enabled, "disabled_reason": draft.disabled_reason}
        show_json(row)
        return
    note = "" if draft.enabled else f"  (disabled: {cell(draft.disabled_reason or 'as in the file')})"
    typer.echo(f"{cell(draft.name)}  {result}{note}")


def _tell_left_out(left_out: "Sequence[LeftOut]", as_json: bool, *, err: bool = False) -> None:
    if as_json and not err:
        for each in left_out:
            show_json({"left_out": each.what, "where": each.where, "why": each.why})
        return
    if left_out:
        typer.echo(f"\nNot translated, or not quite: {len(left_out)}", err=err)
    for each in left_out:
        typer.echo(f"{cell(each.where)}: {cell(each.what)}: {cell(each.why)}", err=err)


def export(
    context: typer.Context,
    format: Annotated[str, typer.Option("--format", help="yaml, json, gmail or sieve.")] = "yaml",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to this file, and not to the screen.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write all rules as a file for `postroom rules import`, Gmail or Sieve; tell on stderr what that cannot say."""
    from postroom.store.rules import list_rules

    wanted = "json" if as_json else _format(format, Path())
    found = run_transaction(application_of(context), settings_for(data_dir), list_rules())
    exported = _written([view.draft for view in found], wanted)
    if output is None:
        typer.echo(exported.text, nl=False)
    else:
        _write(output, exported.text)
    _tell_left_out(exported.left_out, as_json, err=True)


def _written(drafts: "list[RuleDraft]", format: str) -> "Exported":
    from postroom.core.rules.documents import write_documents
    from postroom.core.rules.exchange import Exported
    from postroom.core.rules.gmail import write_gmail_filters
    from postroom.core.rules.sieve import write_sieve_rules

    match format:
        case "gmail":
            return write_gmail_filters(drafts)
        case "sieve":
            return write_sieve_rules(drafts)
        case _:
            return Exported(write_documents(drafts, cast("DocumentFormat", format)), [])


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput("--output", f"{str(path)!r} cannot be written ({error.strerror})", "give another file") from None
