"""The tree of commands, and how a run of it ends.

`postroom --help` must answer at once, so a command's module is imported only when that command is called: until then
a `Deferred` with the command's name and summary stands in its place.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from postroom import __version__
from postroom.core.errors import BadInput, PostroomError, SettingsError

if TYPE_CHECKING:
    from postroom.compose.application import PostroomApplication

COMMANDS = {
    "demo": "Try Postroom on a sandbox mailbox; nothing to set up.",
    "serve": "Run Postroom: pages, mailbox and worker in one process.",
    "worker": "Run jobs only, beside other processes on the same PostgreSQL.",
    "sandbox": "Run the Gmail emulator alone.",
    "preview": "Show what Postroom would do with mail in files, touching nothing.",
    "account": "Connect mailboxes; look at them, pause, resume or remove them.",
    "key": "Look at the keys that seal the accounts' secrets, and replace them.",
    "contacts": "Take in address books, and look at whom Postroom knows.",
    "filters": "Look at the rules that say how much of a message is taken in; add some, remove some.",
    "migrate": "Bring the database up to date.",
    "backup": "Write everything that Postroom keeps into one file, while it runs.",
    "restore": "Put a backup in place, where no Postroom process runs.",
    "queue": "Look at the queues, and replay what went through them.",
    "jobs": "Look at jobs, retry or cancel them.",
    "rules": "Write rules, look at them, try them on mail, exchange them with Gmail and Sieve.",
    "simulate": "Show what a change of rules would have done to the mail that is here.",
    "shadow": "Let rules, categories of mail or the model decide without touching anything, and compare.",
    "proposals": "Look at rules that Postroom proposes from what you do by hand; accept or dismiss them.",
    "model": "See whether a language model decides, what it costs, and what it was asked.",
    "model-rules": "Give the model rules in words; look at them, change them.",
    "directions": "Tell the model your wishes in general; look at them, change them.",
    "labels": "Look at labels; say what they are for, and whether the classifier may use them.",
    "actions": "Look at what was done with messages, and why.",
    "approvals": "Look at what waits for your approval, and approve or reject it.",
    "reclassify": "Decide anew about messages, with the rules and the model of today.",
    "outbound": "Look at mail on its way out; settle what became of it.",
    "undo": "Take back an action, or all that a rule, a batch or a time did.",
    "pause": "Stop every change to mailboxes at once.",
    "resume": "Let changes to mailboxes go on.",
    "protect": "Name senders, domains and labels whose mail is never touched.",
    "token": "Make tokens for connectors, pages and agents; look at them, revoke them.",
    "audit": "Look at the audit log.",
    "connector": "Run a connector by itself, or look at those that report.",
    "doctor": "Check that everything Postroom relies on is as it should be.",
    "settings": "Show the settings and where each came from.",
}


class Deferred(TyperCommand):
    """A command whose module is imported when it is called."""

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)

    def load(self) -> TyperCommand | TyperGroup:
        module = importlib.import_module(f"postroom.cli.{(self.name or '').replace('-', '_')}")
        return cast("TyperCommand | TyperGroup", get_command(module.app))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent=parent, **extra)


def command_tree() -> TyperGroup:
    root = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
    root.callback()(_postroom)
    tree = cast("TyperGroup", get_command(root))
    for name, summary in COMMANDS.items():
        tree.add_command(Deferred(name, summary))
    return tree


def run(application: "PostroomApplication", arguments: Sequence[str] | None = None) -> None:
    """Runs one command and ends the process: 0 done, 1 failed, 2 wrongly asked, 130 interrupted."""
    code = 0
    try:
        _check_text(sys.argv[1:] if arguments is None else arguments)
        command_tree().main(arguments, prog_name="postroom", obj=application)
    except* PostroomError as raised:
        code = max(_report(error) for error in _leaves(raised))
    sys.exit(code)


def _check_text(arguments: Sequence[str]) -> None:
    """Arguments are bytes to the system. What is no text cannot be stored, shown or compared."""
    for place, argument in enumerate(arguments, 1):
        if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
            raise BadInput(
                f"argument {place}", "is no UTF-8 text", "write it in UTF-8; rename a file whose name is not"
            )


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"postroom {__version__}")
        raise typer.Exit


def _postroom(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Postroom stands between a mailbox and everything that wants its owner's attention."""


def _report(error: PostroomError) -> int:
    from postroom.telemetry.logs import one_line, without_secrets

    typer.echo(f"postroom: {one_line(without_secrets(str(error)))}", err=True)
    return 2 if isinstance(error, (BadInput, SettingsError)) else 1


def _leaves(group: BaseExceptionGroup[PostroomError]) -> list[PostroomError]:
    found: list[PostroomError] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
