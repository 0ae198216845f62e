"""Commands in an empty folder: those that look say what to start with, and leave no trace."""

from collections.abc import Iterator

from typer.core import TyperGroup

from postroom.interfaces.cli.root import Deferred, command_tree
from support.shell import Shell

ID = "01a1e816-9b0f-7939-b7a2-12e5d82086ce"
# Commands that only look, with what each needs.
LOOKING = {
    "account list": "",
    "actions explain": ID,
    "actions list": "",
    "approvals list": "",
    "approvals show": ID,
    "audit list": "",
    "backfill list": "",
    "backfill show": ID,
    "connector list": "",
    "contacts list": "",
    "destination list": "",
    "directions list": "",
    "dkim list": "",
    "filters list": "",
    "jobs list": "",
    "jobs show": ID,
    "key list": "",
    "labels list": "",
    "mail list": "",
    "mail search": "words",
    "mail show": ID,
    "mail why": ID,
    "model calls": "",
    "model-rules list": "",
    "outbound list": "",
    "outbound recipients": ID,
    "outbound show": ID,
    "outbound stats": "",
    "person list": "",
    "proposals list": "",
    "proposals show": ID,
    "protect list": "",
    "queue peek": "email",
    "queue stats": "",
    "retention preview": "",
    "retention show": "",
    "rules export": "",
    "rules list": "",
    "rules show": "receipts",
    "rules test": f"--message {ID}",
    "sender list": "",
    "sender show": "ada@example.com",
    "shadow list": "",
    "shadow report": "--model",
    "simulate": "--without receipts",
    "suppression list": "",
    "tenant list": "",
    "tenant show": "acme",
    "token list": "",
    "undo": "--since 7d --dry-run",
}
# Commands that answer without data: from the settings, the machine, or the schema.
ANSWERING = {
    "connector refused": 0,
    "doctor": 0,
    "migrate --check": 1,
    "model status": 0,
    "settings": 0,
    "settings list": 0,
}
# Commands that ask the machine, which has its own tests.
OF_THE_MACHINE = {"service status"}
# What commands that look are called.
LOOKS = {"calls", "explain", "list", "peek", "recipients", "refused", "search", "show", "stats", "status", "why"}


def every_command() -> Iterator[str]:
    for name, found in command_tree().commands.items():
        command = found.load() if isinstance(found, Deferred) else found
        if isinstance(command, TyperGroup):
            yield from (f"{name} {each}" for each in command.commands)
        else:
            yield name


def test_every_command_that_looks_is_tried() -> None:
    looking = {name for name in every_command() if name.split()[-1] in LOOKS}
    assert looking - LOOKING.keys() - ANSWERING.keys() == OF_THE_MACHINE
    assert LOOKING.keys() <= set(every_command())


def test_a_command_that_looks_says_what_to_start_with_and_creates_nothing(shell: Shell) -> None:
    for name, arguments in LOOKING.items():
        assert shell(*name.split(), *arguments.split()) == 1, (name, shell.out, shell.err)
        assert "nothing here yet" in shell.err, (name, shell.err)
        assert "start with `postroom init`" in shell.err
        assert list(shell.folder.iterdir()) == [], name
    for name, code in ANSWERING.items():
        assert shell(*name.split()) == code, (name, shell.err)
        assert list(shell.folder.iterdir()) == [], name


def test_the_data_of_a_demo_beside_it_is_pointed_to(shell: Shell) -> None:
    demo = shell.folder / ".postroom-demo"
    assert shell("migrate", "--data-dir", str(demo)) == 0
    assert shell("mail", "list") == 1
    assert f"--data-dir {demo}" in shell.err


def test_commands_that_begin_something_create_the_database(shell: Shell) -> None:
    assert shell("token", "create", "--role", "admin") == 0
    assert (shell.folder / "postroom-data" / "postroom.sqlite3").exists()
    assert shell("jobs", "list") == 0
