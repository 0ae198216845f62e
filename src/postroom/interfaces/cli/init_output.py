"""How `postroom init` shows a first look at a mailbox: counts, and real mail as examples. On standard error."""

import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from textwrap import fill

import typer

from postroom.core.counted import counted
from postroom.interfaces.cli.output import WIDEST_TEXT, cell, clipped
from postroom.operations.preview.first_look import FirstLook, LookExample, StarterLook
from postroom.operations.rules.starter_rules import RuleEffect

NARROWEST = 60
LONGEST_SENDER = 30
INDENT = " " * 6
MOST_DAYS_COUNTED = 100


def say(text: str = "") -> None:
    typer.echo(text, err=True)


def reading(number: int) -> None:
    """Show on a terminal how much mail was read, in one line; 0 clears it."""
    if sys.stderr.isatty():
        text = f"Reading your newest mail: {counted(number, 'message')}" if number else ""
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)


def show_look(look: FirstLook) -> None:
    """Say what the person's own rules do with the newest mail, and what each starter would do."""
    if not look.messages or look.oldest is None:
        say("There is no mail to show yet. You can choose rules all the same.")
        _show_starters(look.starters)
        return
    days = (look.now - look.oldest) // timedelta(days=1)
    span = "of today" if days < 1 else f"of the last {counted(days, 'day')}"
    if days > MOST_DAYS_COUNTED:
        span = f"since {look.oldest:%B %Y}"
    say(f"Your newest {counted(look.messages, 'message')}, {span}. Postroom only read them.")
    if look.own is not None:
        say(f"\nYour own rules ({look.own.rules:,}): {effect_words(look.own)}")
        _show_examples(look.own.examples)
    if look.off is not None:
        say(f"\nYour rules that are off ({look.off.rules:,}), if they were on: {effect_words(look.off)}")
        _show_examples(look.off.examples)
    say("\nWhat starter rules would have done, beside your own rules:" if look.own else "\nWhat starter rules do:")
    _show_starters(look.starters)
    if look.has_model:
        say("\nYour model decides about mail that no rule matches.")


def show_starter(starter: StarterLook, *, described: bool = True) -> None:
    """Show one starter: what it would have done, what it is for, and examples."""
    used = " (in use)" if starter.chosen == "yes" else ""
    say(f"\n  {starter.title}{used}: {effect_words(starter)}")
    if described:
        say(fill(starter.description, _width(), initial_indent=INDENT, subsequent_indent=INDENT))
    _show_examples(starter.examples)


def effect_words(effect: RuleEffect) -> str:
    """Return how many messages the rules match, and what happens to those, in words."""
    return f"{effect.matched:,} of {effect.mail:,}, {_fates(effect)}" if effect.matched else "nothing"


def lately_words(look: FirstLook, effect: RuleEffect) -> str:
    """Return the same for mail that came before, with the number of messages, in words."""
    said = f"{counted(effect.mail, 'message')}, {_fates(effect)}"
    return said if look.reaches_lately else f"of the newest {said}; there may be more"


def _fates(effect: RuleEffect) -> str:
    found = {"leave": effect.leave_inbox, "wait": effect.wait}
    ends = {"leave": "the inbox", "wait": "for your approval"}
    parts = [f"{number:,} {verb}{'s' if number == 1 else ''} {ends[verb]}" for verb, number in found.items() if number]
    return ", ".join(parts) or "nothing leaves the inbox"


def choose_number(question: str, offers: Sequence[str]) -> int:
    """Ask for one of the numbered offers; the first is the default. Return its index."""
    say(f"\n{question}")
    for number, offer in enumerate(offers, 1):
        say(f"  {number}  {offer}")
    return _ask("Choose", lambda typed: int(typed) - 1 if typed in map(str, range(1, len(offers) + 1)) else None)


def _ask(prompt: str, read: Callable[[str], int | None]) -> int:
    while True:
        found = read(str(typer.prompt(prompt, default="1", err=True)).strip())
        if found is not None:
            return found
        say("Type one of the numbers.")


def _show_starters(starters: Sequence[StarterLook]) -> None:
    for starter in starters:
        if starter.matched:
            show_starter(starter, described=False)
    if others := [each.title for each in starters if not each.matched]:
        say(f"\n  No mail for: {', '.join(others)}.")


def _show_examples(examples: Sequence[LookExample]) -> None:
    room = _width() - LONGEST_SENDER - len(INDENT) - 2
    for each in examples:
        say(f"{INDENT}{clipped(each.sender, LONGEST_SENDER):<{LONGEST_SENDER}}  {clipped(each.subject, room)}")
    if does := list(dict.fromkeys(cell(each.would) for each in examples)):
        say(f"{INDENT}→ {'; or '.join(does)}")


def _width() -> int:
    return max(NARROWEST, min(shutil.get_terminal_size().columns, WIDEST_TEXT))
