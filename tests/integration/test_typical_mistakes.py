"""Typical mistakes: each is answered in one line that says what to do, with the right exit code and no traceback."""

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.command import POSTROOM, announced, environment, postroom, running
from support.terminal import at_terminal
from support.warm_start import run_command

FILES = {
    "tab.yaml": b"name: shop\n\tthen: archive\n",
    "list.yaml": b"- 1\n",
    "typo.yaml": b"name: shop\nif: {subject_contian: x}\nthen: archive\n",
    "binary.yaml": b"\xff\xfe\x00",
}
RULE = ("rules", "add", "--name", "x", "--if")

WRONG: list[tuple[str, int, str]] = [
    # Commands and options
    ("rule list", 2, "did you mean 'rules'?"),
    ("list", 2, "`postroom --help` lists them"),
    ("help", 2, "did you mean --help?"),
    ("version", 2, "did you mean --version?"),
    ("jobs cancle x", 2, "did you mean 'cancel'?"),
    ("jobs list --stat failed", 2, "did you mean --state?"),
    ("jobs list -h", 2, "did you mean --help?"),
    ("--data-dir x mail list", 2, "comes after the command"),
    ("jobs list now", 2, "`postroom jobs list --help`"),
    ("rules enable", 2, "missing argument 'NAME'"),
    ("do archive", 2, "missing option '--message'"),
    # Values
    ("jobs list --state faild", 2, "use one of queued, running"),
    ("jobs list --limit many", 2, "not a whole number"),
    ("jobs list --limit 0", 2, "must be at least 1"),
    ("mail list --since yesterday", 2, "write 30d, 12h"),
    ("mail search from:", 2, "leave no space"),
    ("token create --role boss", 2, "use one of connector"),
    # Names and ids
    ("jobs show zz", 2, "give at least 4 digits"),
    ("jobs show 12345678", 1, "`postroom jobs list` lists them"),
    ("undo 0123", 1, "`postroom actions list`"),
    ("mail why zz", 1, "`postroom mail list`"),
    ("rules show nope", 1, "`postroom rules list`"),
    ("account pause nobody@example.com", 1, "`postroom account list`"),
    # Files
    ("rules add none.yaml", 2, "give another file"),
    ("rules add tab.yaml", 2, "line 2"),
    ("rules add list.yaml", 2, "give each rule a name"),
    ("rules add typo.yaml", 2, "did you mean 'subject_contains'?"),
    ("rules add binary.yaml", 2, "save it as UTF-8"),
    ("restore none.tar", 1, "give the name of a backup"),
    ("restore tab.yaml", 1, "is not a backup"),
    ("preview none", 2, "give an mbox"),
    ("contacts import tab.yaml", 2, "vCard or CSV"),
    # Nothing to do
    ("simulate", 2, "give RULES_FILE"),
]
SETTINGS: list[tuple[dict[str, str], int, str]] = [
    ({"POSTROOM_WEB_PROT": "1"}, 2, "did you mean POSTROOM_WEB_PORT?"),
    ({"POSTROOM_WEB_PORT": "99999"}, 2, "from 0 to 65535"),
    ({"POSTROOM_TIME_ZONE": "Europe/Brelin"}, 2, "a name such as UTC or Europe/Berlin"),
    ({"POSTROOM_LOG_LEVEL": "verbose"}, 2, "use one of debug, info"),
    ({"POSTROOM_DATABASE_URL": "mysql://x"}, 2, "use an address such as postgresql://"),
]
SETTINGS_FILES = [
    ("[web\nport = 1\n", "this is not TOML"),
    ("[wbe]\nport = 1\n", "did you mean web.port?"),
    ('[web]\nport = "x"\n', "use a whole number"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and with files that are wrong."""
    made = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    assert postroom(made, "migrate").returncode == 0
    return made


def call(folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> tuple[int, str]:
    found = run_command(arguments, folder, {**environment(folder, None), **(more or {})})
    return found.returncode, found.stderr


def assert_answered(answer: tuple[int, str], code: int, words: str) -> None:
    found, said = answer
    assert found == code, said
    assert words in said
    assert said.startswith("postroom: ")
    assert said.count("\n") == 1
    assert len(said) < 400
    assert "Traceback" not in said


@pytest.mark.parametrize(("typed", "code", "words"), WRONG, ids=[each[0] for each in WRONG])
def test_a_mistake_is_answered_with_what_to_do(folder: Path, typed: str, code: int, words: str) -> None:
    assert_answered(call(folder, *typed.split()), code, words)


@pytest.mark.parametrize(
    ("condition", "then", "words"),
    [('{"subject_contains": "a"', "archive", "is not JSON"), ('{"subject_contains": "a"}', "archve", "'archive'")],
)
def test_a_rule_that_cannot_be_read_is_answered_so_too(folder: Path, condition: str, then: str, words: str) -> None:
    assert_answered(call(folder, *RULE, condition, "--then", then), 2, words)


@pytest.mark.parametrize(("more", "code", "words"), SETTINGS, ids=[str(each[0]) for each in SETTINGS])
def test_a_wrong_setting_in_the_environment(folder: Path, more: dict[str, str], code: int, words: str) -> None:
    assert_answered(call(folder, "mail", "list", more=more), code, words)


@pytest.mark.parametrize(("text", "words"), SETTINGS_FILES, ids=["toml", "unknown", "type"])
def test_a_wrong_settings_file(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postroom.toml").write_text(text)
    assert_answered(call(tmp_path, "settings"), 2, words)


def test_nothing_but_the_name_shows_the_commands(folder: Path) -> None:
    code, said = call(folder)
    assert code == 2
    assert said.startswith("Usage: postroom")
    assert "serve" in said


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert_answered(call(tmp_path, "mail", "list"), 1, "postroom init")


def test_a_question_without_a_terminal_is_not_answered_by_itself(folder: Path) -> None:
    code, said = call(folder, "retention", "prune")
    assert code == 1
    assert "--yes" in said


def test_a_port_in_use(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_answered(call(folder, "serve", "--port", port), 2, port)


def test_pages_for_other_machines_without_protection(folder: Path) -> None:
    assert_answered(call(folder, "serve", "--host", "0.0.0.0"), 2, "TLS")


def test_a_second_serve_on_the_same_data(folder: Path) -> None:
    with running(folder, "serve", "--port", "0", "--json") as first:
        announced(first)
        assert_answered(call(folder, "serve", "--port", "0"), 1, "already")


def test_a_terminal_without_unicode_still_gets_an_answer(folder: Path) -> None:
    assert postroom(folder, "directions", "add", "Grüße, “keep it”").returncode == 0
    found = subprocess.run(
        [*POSTROOM, "directions", "list"],
        cwd=folder,
        env=environment(folder, None) | {"PYTHONIOENCODING": "latin-1"},
        capture_output=True,
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert "Grüße, \\u201ckeep it".encode("latin-1") in found.stdout


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    command = f"{' '.join(map(repr, POSTROOM))} jobs --help | true"
    found = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(folder, None), capture_output=True, text=True
    )
    assert (found.stdout, found.stderr) == ("", "")


def test_a_full_disk_behind_the_output(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [*POSTROOM, "directions", "list"],
            cwd=folder,
            env=environment(folder, None),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert found.returncode == 1
    assert found.stderr == "postroom: the disk is full; free some space\n"


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_narrow_or_plain_terminal_gets_whole_lines_and_no_codes(folder: Path, more: dict[str, str]) -> None:
    name = f"mail of the shop in the next street {len(str(more))}"
    condition = '{"sender_domain": "shop.example"}'
    assert postroom(folder, "rules", "add", "--name", name, "--if", condition, "--then", "archive").returncode == 0
    with at_terminal(folder, "rules", "list", columns=40, more=more) as terminal:
        shown = terminal.read_to_end()
    assert "\x1b" not in shown
    assert "shop.example" in shown
    assert max(map(len, shown.splitlines())) <= 40


def test_a_file_name_that_is_not_text(folder: Path) -> None:
    found = subprocess.run(
        [*POSTROOM, "preview", os.fsdecode(b"\xff.mbox")],
        cwd=folder,
        env=environment(folder, None),
        capture_output=True,
    )
    assert found.returncode == 2
    assert b"write it in UTF-8" in found.stderr
