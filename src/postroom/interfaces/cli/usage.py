"""Errors in how a command was typed, in one line that says what to type instead."""

from typing import Any

import typer
from typer.exceptions import TyperException

from postroom.core.suggestions import nearest

SHARED = ("--data-dir", "--json")
"""Options of every command, which stand behind it."""
WORDS = {
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Input should be a valid integer": "not a whole number",
    "Input should be a valid number": "not a number",
    "Value error, ": "",
    "got unexpected extra argument(s)": "one word too many:",
    "Got unexpected extra argument(s)": "one word too many:",
}
"""Words of the libraries that read arguments, and ours."""


def report_usage(error: TyperException) -> int:
    """Print the line, or the help of a group that was called without a command; return the exit code."""
    text = error.format_message()
    if "\n" in text:
        typer.echo(text, err=True)
        return error.exit_code
    from postroom.telemetry.logs import one_line, without_secrets

    typer.echo(f"postroom: {one_line(without_secrets(_problem(error, text)))}", err=True)
    return error.exit_code


def _problem(error: Any, text: str) -> str:
    context = getattr(error, "ctx", None)
    help = f"`{getattr(context, 'command_path', 'postroom')} --help`"
    option: str | None = getattr(error, "option_name", None)
    if option is not None and context is not None and hasattr(error, "possibilities"):
        known = [name for each in context.command.params for name in each.opts if name[:2] == "--" and not each.hidden]
        if context.parent is None and option in SHARED:
            return f"{option} comes after the command, as in `postroom mail list {option}`"
        names = {name.strip("-"): name for name in (*known, "--help")}
        near = nearest("help" if option == "-h" else option.strip("-"), names)
        hint = f"{help} lists all" if near is None else f"did you mean {names[near]}?"
        return f"there is no option {option}; {hint}"
    plain = text.removesuffix(".").partition(", unable to ")[0]
    for theirs, ours in WORDS.items():
        plain = plain.replace(theirs, ours)
    return f"{plain[0].lower()}{plain[1:]}; {help} shows how to call it"
