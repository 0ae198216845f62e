"""`postroom mail` and `postroom do`: mail on the command line, without anything that a stranger could do to it."""

import io
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.short_ids import short_id
from postroom.interfaces.cli.session import command_line
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database, Script, sql, transaction
from postroom.system.wall_clock import wall_clock
from support.mail import done, keep_mail
from support.shell import Shell, on_database

HOSTILE = "Hi \x1b[2J\x1b]0;owned\x07 \u202e there"


@transaction
def put_into(category: str, message: UUID) -> Script[None]:
    yield sql("insert_message_categories", message, [category])


@pytest.fixture
def message(shell: Shell, migrated_sqlite: Path) -> UUID:
    (shell.folder / "postroom-data").mkdir()
    shutil.copy(migrated_sqlite, shell.folder / "postroom-data" / "postroom.sqlite3")
    sender = [("From", f"{HOSTILE} <mara@lindqvist.example>"), ("Message-ID", "<one@lindqvist.example>")]

    async def keep(database: Database) -> UUID:
        body = f"First line.\n{HOSTILE}\n\tlast"
        return await keep_mail(database, wall_clock, subject=HOSTILE, body=body, headers=sender)

    return on_database(shell, keep)


def test_mail_is_listed_searched_read_and_explained(shell: Shell, message: UUID) -> None:
    for words in (["list"], ["search", "first", "-second"], ["search", "from:mara", "in:inbox"]):
        assert shell("mail", *words) == 0
        assert short_id(message) in shell.out
        assert shell("mail", *words, "--json") == 0
        assert [row["id"] for row in shell.json()] == [str(message)]
    for command in ("show", "why"):
        for name in (short_id(message), str(message), "one@lindqvist.example", "mail-1"):
            assert shell("mail", command, name) == 0
            assert short_id(message) in shell.out
            assert shell("mail", command, name, "--json") == 0
            assert shell.json()[0]["id"] == str(message)


def test_nothing_that_a_stranger_wrote_reaches_the_terminal_as_a_command(shell: Shell, message: UUID) -> None:
    for words in (["list"], ["search", "there"], ["show", str(message)], ["why", str(message)]):
        assert shell("mail", *words) == 0
        assert not set(shell.out) & {"\x1b", "\x07", "\u202e"}
        assert "there" in shell.out
    assert shell("mail", "show", str(message)) == 0
    assert "First line.\n" in shell.out


def test_a_phrase_that_the_shell_unquoted_is_one_again(shell: Shell, message: UUID) -> None:
    for found, words in ((1, ["from:mara lindqvist"]), (0, ["from:lindqvist mara"]), (0, ["-first line"])):
        assert shell("mail", "search", "--json", *words) == 0
        assert len(shell.json()) == found


def test_mail_is_listed_by_category(shell: Shell, message: UUID) -> None:
    assert shell("mail", "list", "--category", "travel") == 0
    assert shell.out == "No mail matches.\n"
    on_database(shell, lambda database: database.run(put_into("travel", message)))
    assert shell("mail", "list", "--category", "travel", "--json") == 0
    assert [row["id"] for row in shell.json()] == [str(message)]


def test_an_empty_list_says_why(shell: Shell) -> None:
    assert shell("migrate") == 0
    assert shell("mail", "list") == 0
    assert "No mail is stored yet." in shell.out
    assert shell("mail", "search", "nothing") == 0
    assert shell.out == "No mail matches.\n"


def test_what_is_wrong_is_said_in_one_line(shell: Shell, message: UUID) -> None:
    for line, says in (
        ("mail why ffff", "there is no mail with the id 'ffff'"),
        ("mail show \x1b[2J", "there is no mail"),
        ("mail list --tier urgent", "use one of high_priority"),
        ("mail list --category finances", "did you mean 'finance'"),
        ("mail list --since yesterday", "is not a time"),
        ("mail list --account eve@example.com", "eve@example.com"),
        ("mail search has:pictures", "write has:attachment"),
        ("mail search ---", "has no word in it"),
        ("do archive", "--message"),
        ("do archive --message ffff", "there is no mail with the id 'ffff'"),
        ("do dance --message ffff", "is not an action"),
        ("undo ffff", "there is no action 'ffff'"),
        ("undo everything", "is not the id of an action"),
    ):
        assert shell(*line.split(" ")) in (1, 2), line
        assert says in shell.err
        assert "Traceback" not in shell.err
        assert "\x1b" not in shell.err


def test_ones_own_action_is_recorded_and_undo_takes_its_short_id(shell: Shell, message: UUID) -> None:
    assert shell("do", "archive", "mark_read", "--message", short_id(message), "--no-wait") == 0
    assert shell.out == f"{short_id(message)}  queued: it will be archived and marked as read\n"
    (action,) = on_database(shell, lambda database: database.run(list_actions(10)))
    assert (action.action_type, action.actor, action.message_id) == ("several", "user", message)
    assert (action.asked_by or "").startswith("cli:")
    completed = on_database(shell, lambda database: done(database, wall_clock, message))
    assert shell("undo", short_id(completed)) == 0
    assert shell.out == "It is being undone.\n"


def test_what_cannot_be_undone_is_asked_about_first(
    shell: Shell, message: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("do", "delete", "--message", short_id(message), "--no-wait") == 1
    assert "cannot be undone" in shell.out
    assert on_database(shell, lambda database: database.run(list_actions(10))) == []
    assert shell("do", "delete", "--message", short_id(message), "--no-wait", "--yes") == 0
    assert len(on_database(shell, lambda database: database.run(list_actions(10)))) == 1


def test_a_printed_command_is_for_the_same_program_and_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/opt/my tools/postroom"])
    folder = shell.folder / "a b"
    assert command_line("mail list", folder) == f"'/opt/my tools/postroom' mail list --data-dir '{folder}'"
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert command_line("mail list") == "postroom mail list"
