"""The tree of commands, and the exit code of a run.

`postroom --help` must answer at once, so a command's module is imported only when that command is called. Until
then a `Deferred` with the command's name and summary takes its place.
"""

import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from postroom import __version__
from postroom.core.errors import BadInput, PostroomError, SettingsError
from postroom.interfaces.cli.whole_help import WholeHelp

if TYPE_CHECKING:
    from postroom.compose.application import PostroomApplication

GROUPS: dict[str, dict[str, str]] = {
    "Begin": {
        "init": "Connect your mailbox, see what rules would do with your mail, choose some, and switch on.",
    },
    "Look": {
        "demo": "Try Postroom on a sandbox mailbox; nothing to set up.",
        "preview": "Show what Postroom would do with mail in files, changing nothing.",
        "doctor": "Check everything that Postroom relies on.",
        "settings": "Show the settings and where each came from.",
        "completion": "Complete commands and options when you press Tab.",
    },
    "Mail": {
        "mail": "List and search stored mail, read it, and ask why it is where it is.",
        "do": "Archive, label or snooze mail yourself; `undo` takes it back.",
        "undo": "Take back one action, or all of a rule, a batch or a period.",
        "approvals": "List actions that wait for your approval; approve or reject them.",
        "actions": "Show what was done with messages, and why.",
        "account": "Connect mailboxes; list, pause, resume or remove them.",
        "contacts": "Import address books; list the contacts that Postroom knows.",
        "labels": "List labels; describe what they are for, and allow or deny them to the classifier.",
        "search-and-ingest": "Search a mailbox for old mail, and ingest what is found.",
        "backfill": "Fetch old mail of chosen categories: plan, estimate, create, watch, pause.",
        "reclassify": "Decide again about messages, with today's rules and model.",
    },
    "Rules": {
        "rules": "Write rules: what is done with mail that meets conditions. List and test them, exchange them "
        "with Gmail and Sieve.",
        "simulate": "Show what a change of rules would have done to stored mail.",
        "shadow": "Let rules, categories of mail or the model decide without acting, and compare with what you do.",
        "proposals": "List rules that Postroom proposes from what you do by hand; accept or dismiss them.",
        "filters": "List the filters (ingestion rules) that say how much of a message is stored; add or remove some.",
        "protect": "Protect senders, domains and labels: their mail is never changed.",
        "model": "Show the language model in use, what it costs, and what it was asked.",
        "model-rules": "Give the model rules in words (model rules); list or change them.",
        "directions": "Give the model general instructions; list or change them.",
    },
    "Run": {
        "serve": "Run Postroom: pages, mailbox and worker in one process.",
        "ready": "Ask the running Postroom whether it is ready, for health checks.",
        "service": "Start Postroom with this machine, as a service of systemd.",
        "worker": "Run jobs only, beside other processes on the same PostgreSQL.",
        "submission": "Accept mail of senders over SMTP only, beside other processes.",
        "sandbox": "Run the Gmail emulator alone.",
        "connector": "Run a connector by itself, or list the connectors that report.",
        "pause": "Stop every change to mailboxes at once.",
        "resume": "Allow changes to mailboxes again.",
    },
    "Operate": {
        "queue": "Show the queues; replay past events.",
        "jobs": "List, retry, cancel or dismiss jobs.",
        "retention": "Show how long mail is kept; prune what is past its time.",
        "person": "Add people who may sign in to the pages; change their roles, help them in, sign them out.",
        "token": "Create, list and revoke tokens for connectors, pages, agents and senders.",
        "audit": "Show the audit log.",
        "key": "List and replace the keys that encrypt the accounts' secrets.",
        "upgrade": "Back up, bring the database up to date, and check it; or say what that would do.",
        "migrate": "Bring the database up to date.",
        "backup": "Back up all of Postroom's data into one file, while it runs.",
        "restore": "Restore a backup, while no Postroom process runs.",
        "uninstall": "Say what there is of Postroom on this machine, and remove what you choose.",
        "outbound": "List and settle outgoing mail; see how fairly it is served; simulate the queue.",
        "tenant": "Add the tenants on whose account mail is sent; pause them, set their weights.",
        "sender": "Add the users who may submit mail; throttle, release or disable them.",
        "suppression": "List addresses that get no more mail; add or remove some.",
        "destination": "Pause and resume destinations of outgoing mail; list those that are paused.",
        "dkim": "Make keys that sign outgoing mail of a domain; list or remove them.",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}


NOBODY_ANSWERS = "\nCanceled: this has to be answered at a terminal, or beforehand with an option such as --yes."
COMPLETE = "_POSTROOM_COMPLETE"
"""Set in the environment by the user's shell, which then reads what may come next."""

E = TypeVar("E", bound=Exception)


class Deferred(TyperCommand):
    """A command whose module is imported when the command is called."""

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)

    def load(self) -> TyperCommand | TyperGroup:
        module = importlib.import_module(f"postroom.interfaces.cli.{(self.name or '').replace('-', '_')}")
        return cast("TyperCommand | TyperGroup", get_command(module.app))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent=parent, **extra)


class RootGroup(WholeHelp):
    """The root, whose commands are listed in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, summaries in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(summaries.items()))


def command_tree() -> TyperGroup:
    root = typer.Typer(cls=RootGroup, rich_markup_mode=None, add_completion=False, no_args_is_help=True)
    root.callback()(_postroom)
    tree = cast("TyperGroup", get_command(root))
    for name, summary in COMMANDS.items():
        tree.add_command(Deferred(name, summary))
    return tree


def run(application: "PostroomApplication", arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    code = 0
    try:
        try:
            code = _call(application, arguments)
        except* PostroomError as raised:
            code = max(_report(error) for error in _leaves(raised))
        except* OSError as raised:
            code = max(_report(_unusable(error)) for error in _leaves(raised))
    except Exception as error:
        if not sys.stderr.isatty() or os.environ.get("POSTROOM_LOG_LEVEL") == "debug":
            raise
        code = _report(_unexpected(error))
    sys.exit(code)


def _call(application: "PostroomApplication", arguments: Sequence[str] | None) -> int:
    """Call the command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode still gets an answer
    _check_text(sys.argv[1:] if arguments is None else arguments)
    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        code = command_tree().main(
            arguments, prog_name="postroom", complete_var=COMPLETE, standalone_mode=False, obj=application
        )
    except typer.Abort:
        asked = "Canceled." if sys.stdin.isatty() else NOBODY_ANSWERS
        typer.echo(asked, err=True)
        return 1
    except TyperException as error:
        from postroom.interfaces.cli.usage import report_usage

        return report_usage(error)
    return code if isinstance(code, int) else 0


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8: they cannot be stored, shown or compared."""
    for place, argument in enumerate(arguments, 1):
        if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
            raise BadInput(
                f"argument {place}", "is not UTF-8 text", "write it in UTF-8; rename a file whose name is not"
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
    """Postroom triages your mail and events: by rules, by a language model, and with your approval."""


def _report(error: PostroomError) -> int:
    from postroom.telemetry.logs import one_line, without_secrets

    typer.echo(f"postroom: {one_line(without_secrets(str(error)))}", err=True)
    return 2 if isinstance(error, (BadInput, SettingsError)) else 1


def _unusable(error: OSError) -> PostroomError:
    """An error of the system, which a file or folder that may not be used causes, in one line."""
    if error.errno == errno.ENOSPC:
        return PostroomError("the disk is full; free some space")
    what = "" if error.filename is None else f"{error.filename}: "
    return PostroomError(
        f"{what}{error.strerror or type(error).__name__}; check that it exists and that you may use it, or choose "
        "another folder with --data-dir"
    )


def _unexpected(error: Exception) -> PostroomError:
    """An error that nobody expects, which a person at a terminal need not read as a traceback."""
    *_, last = traceback.extract_tb(error.__traceback__)
    place = f"{type(error).__name__} in {os.path.basename(last.filename)}, line {last.lineno}"
    return PostroomError(
        f"this should not have happened ({place}); call it again with POSTROOM_LOG_LEVEL=debug, and report what it says"
    )


def _leaves(group: BaseExceptionGroup[E]) -> list[E]:
    found: list[E] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
