"""How `postroom rules list` shows rules to people: in words, with what became of them."""

from collections.abc import Sequence

import typer

from postroom.core.counted import counted
from postroom.interfaces.cli.output import cell, show_json, show_wrapped
from postroom.interfaces.cli.session import Session
from postroom.operations.rules.rule_views import DAYS, RuleLine
from postroom.operations.rules.rules import rule_row


def show_rules(session: Session, lines: Sequence[RuleLine]) -> None:
    if session.as_json:
        for line in lines:
            show_json(rule_row(line.rule))
        return
    if not lines:
        typer.echo("There are no rules yet. `postroom rules starter list` shows some to begin with.")
    for line in lines:
        show_wrapped(f"{line.rule.priority:>4}  ", f"{cell(line.rule.name)}  ({_state(line)})")
        whose = f"{line.whose}: " if line.whose else ""
        asks = "; asks you each time" if line.rule.needs_approval else ""
        show_wrapped(" " * 6, cell(f"{whose}if {line.when}: {line.does}{asks}"))


def _state(line: RuleLine) -> str:
    rule, hits = line.rule, counted(line.hits, "hit")
    if line.broken:
        return f"cannot be used: {cell(line.broken)}"
    if not rule.enabled:
        return f"off: {cell(rule.disabled_reason)}" if rule.disabled_reason else "off"
    if rule.awaits_confirmation:
        return "waits until you confirm it with `postroom rules confirm`"
    state = "in shadow" if rule.mode == "shadow" else "on"
    last = "" if line.last_at is None else f", last on {line.last_at.astimezone():%Y-%m-%d %H:%M}"
    return f"{state}, {hits} in {DAYS} days{last}"
