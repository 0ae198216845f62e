"""`postroom rules import` and `postroom rules export`: YAML, JSON, Gmail's filters and Sieve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, settings_for
from postroom.cli.output import cell, show_json
from postroom.cli.rule_options import AllowMissing, no_utf_8, read_bytes
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.manage.rule_exchange import (
    Imported,
    ImportedRule,
    LeftOut,
    RuleFormat,
    export_rules,
    import_rules,
    read_rules,
)

FORMATS: tuple[RuleFormat, ...] = get_args(RuleFormat)
ENDINGS: dict[str, RuleFormat] = {".xml": "gmail", ".sieve": "sieve", ".siv": "sieve", ".json": "json"}


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rules in YAML or JSON, mailFilters.xml, or Sieve.")],
    format: Annotated[
        str | None, typer.Option("--format", help="yaml, json, gmail or sieve; default: by the file's name.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; change nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--replace", help="Replace existing rules of the same names.")] = False,
    allow_missing: AllowMissing = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Import rules, all or none, and list what could not be translated.

    Existing rules of the same names are left as they are. Rules that forward, delete or answer are imported disabled:
    review them, then enable them with `postroom rules enable`.
    """
    imported = _read(file, _format(format, file))
    rules = call(
        context,
        settings_for(data_dir),
        import_rules,
        imported.drafts,
        operator_signature(),
        replace_known=overwrite,
        allow_missing=allow_missing,
        dry_run=dry_run,
    )
    for rule in rules:
        show_json(rule) if as_json else typer.echo(_line(rule))
    _show_left_out(imported.left_out, as_json)


def _format(given: str | None, file: Path) -> RuleFormat:
    if given is not None and given not in FORMATS:
        raise BadInput("--format", f"{given!r} is unknown", f"use one of {', '.join(FORMATS)}")
    return given or ENDINGS.get(file.suffix.lower(), "yaml")


def _read(file: Path, format: RuleFormat) -> Imported:
    try:
        return read_rules(read_bytes(file), format)
    except UnicodeDecodeError:
        raise no_utf_8(file) from None


def _line(rule: ImportedRule) -> str:
    note = "" if rule.enabled else f"  (disabled: {cell(rule.disabled_reason or 'as in the file')})"
    return f"{cell(rule.name)}  {rule.result}{note}"


def _show_left_out(left_out: Sequence[LeftOut], as_json: bool, *, err: bool = False) -> None:
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
        Path | None, typer.Option("--output", metavar="FILE", help="Write to this file instead of the screen.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write all rules as a file for `postroom rules import`, Gmail or Sieve; list on stderr what it cannot express."""
    wanted = "json" if as_json else _format(format, Path())
    exported = call(context, settings_for(data_dir), export_rules, wanted)
    if output is None:
        typer.echo(exported.text, nl=False)
    else:
        _write(output, exported.text)
    _show_left_out(exported.left_out, as_json, err=True)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput("--output", f"{str(path)!r} cannot be written ({error.strerror})", "give another file") from None
