"""The command line: answers at once, fails in one line, and leaves the work to the application."""

import asyncio
import getpass
import io
import json
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from postroom import __version__
from postroom.core.errors import BadInput, DatabaseUnavailable, NotFound, PostroomError, SettingsError
from postroom.core.jobs.types import Catalogue, JobType
from postroom.interfaces.cli import run
from postroom.interfaces.cli.output import cell, show_list
from postroom.interfaces.cli.root import COMMANDS
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.jobs.new_jobs import new_job
from support.patience import PATIENCE_S
from support.shell import Shell

HEAVY = """
    pydantic starlette asyncpg apsw structlog rich uvicorn httpx2 orjson
    mcp opentelemetry prometheus_client redis genai_prices
"""
GROUPS = ["Begin", "Look", "Mail", "Rules", "Run", "Operate"]


def test_help_lists_every_command_without_importing_anything_heavy(tmp_path: Path):
    script = "import sys, atexit; atexit.register(lambda: print('MODULES', *sys.modules)); from postroom.app import main; main()"  # noqa: E501
    found = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, cwd=tmp_path)
    text, _, modules = found.stdout.partition("MODULES")
    assert found.returncode == 0
    assert set(HEAVY.split()) & set(modules.split()) == set()
    assert re.findall(r"(?m)^(\w+):$", text)[1:] == GROUPS
    _, _, listed = text.partition(f"{GROUPS[0]}:\n")
    assert re.findall(r"(?m)^  ([\w-]+) ", listed) == list(COMMANDS)


def test_no_group_of_commands_loads_an_http_client_before_it_needs_one():
    modules = [f"postroom.interfaces.cli.{name.replace('-', '_')}" for name in COMMANDS]
    script = f"import sys, {', '.join(modules)}, postroom.triage.decide.model\n"
    script += "print(*{'httpx2', 'genai_prices'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (found.stdout.strip(), found.returncode) == ("", 0)


def test_no_line_of_any_help_is_cut_off_or_wider_than_a_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("", *COMMANDS):
        assert shell(*name.split(), "--help") == 0
        assert [line for line in shell.out.splitlines() if len(line) > 80] == []
        assert [line for line in shell.out.splitlines()[1:] if line.endswith("...")] == [], name


def test_version_is_shown(shell: Shell):
    assert shell("--version") == 0
    assert shell.out == f"postroom {__version__}\n"


def test_a_mistyped_command_suggests_the_right_one(shell: Shell):
    assert shell("setings") == 2
    assert "did you mean 'settings'?" in shell.err
    assert shell("jobs", "cancle", "x") == 2
    assert "did you mean 'cancel'?" in shell.err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("postroom ten", ["tenant"]),
        ("postroom destination ", ["list", "pause", "resume"]),
        ("postroom jobs list --st", ["--state"]),
        ("postroom jobs list --state ", ["queued", "running", "completed", "failed", "canceled"]),
        ("postroom jobs list --state f", ["failed"]),
        ("postroom jobs retry --state f", ["failed"]),
        ("postroom protect add s", ["sender"]),
    ],
)
def test_a_shell_completes_commands_options_and_choices(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, typed: str, offered: list[str]
):
    monkeypatch.setenv("_POSTROOM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    assert shell() == 0
    assert shell.out.split() == offered


def test_an_argument_that_is_not_text_is_refused_by_its_place(shell: Shell):
    assert shell("rules", "disable", "caf\udce9") == 2
    assert "argument 3: is not UTF-8 text" in shell.err


def test_serve_hands_the_effective_settings_to_the_application(shell: Shell):
    assert shell("serve", "--host", "::1", "--port", "0", "--data-dir", "elsewhere") == 0
    assert shell.application.calls == [
        ("serve", {"host": "::1", "port": 0, "data_dir": shell.folder / "elsewhere"}),
    ]
    assert shell.out == "Postroom is at http://127.0.0.1:1/  (Ctrl-C stops it)\n"


def test_servers_announce_their_address_to_programs_too(shell: Shell):
    for command in ("serve", "demo", "sandbox"):
        assert shell(command, "--json") == 0
        assert list(shell.json()[0]) == ["url"]


def test_demo_sandbox_and_worker_pass_their_options_on(shell: Shell):
    assert shell("demo", "--port", "9") == 0
    assert shell("sandbox", "--port", "8", "--seed", "7") == 0
    assert shell("worker", "--concurrency", "5") == 0
    assert shell("worker") == 0
    assert shell.application.calls == [
        ("demo", {"port": 9, "fresh": False}),
        ("sandbox", {"port": 8, "seed": 7}),
        ("worker", {"concurrency": 5}),
        ("worker", {"concurrency": 32}),
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DatabaseUnavailable("the server does not answer"), 1),
        (NotFound("there is nothing"), 1),
        (BadInput("port", "is odd", "use an even one"), 2),
        (SettingsError("web.port is wrong"), 2),
        (ExceptionGroup("two tasks", [ExceptionGroup("one", [NotFound("there is nothing")])]), 1),
    ],
)
def test_an_error_is_one_line_on_stderr_and_an_exit_code(shell: Shell, error: Exception, code: int):
    shell.application.error = error
    assert shell("serve") == code
    assert shell.out == ""
    assert shell.err.startswith("postroom: ")
    assert len(shell.err.splitlines()) == 1


def test_an_error_shows_no_secret_and_cannot_move_the_cursor(shell: Shell):
    shell.application.error = PostroomError("postgresql://ada:kanarienvogel@h/d is\ngone\x1b[2J")
    assert shell("worker") == 1
    assert shell.err == "postroom: postgresql://ada:***@h/d is\\ngone\\x1b[2J\n"


def test_a_bug_is_not_hidden(shell: Shell):
    shell.application.error = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        run(shell.application, ["serve"])


def test_wrong_settings_end_every_command_with_the_remedy(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POSTROOM_WEB_PROT", "1")
    for command in (["serve"], ["settings"], ["doctor"], ["migrate"]):
        assert shell(*command) == 2
        assert "did you mean POSTROOM_WEB_PORT?" in shell.err


def test_settings_are_shown_with_where_they_came_from_and_without_secrets(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("POSTROOM_DATABASE_URL", "postgresql://ada:kanarienvogel@h/d")
    monkeypatch.setenv("POSTROOM_GMAIL_TOKEN", "kanarienvogel")
    (shell.folder / "postroom.toml").write_text("[web]\nport = 9000\n")
    assert shell("settings", "--json") == 0
    rows = {row["setting"]: row for row in shell.json()}
    assert rows["web.port"]["value"] == 9000
    assert rows["web.port"]["from"] == str(shell.folder / "postroom.toml")
    assert rows["database_url"]["value"] == "postgresql://ada:***@h/d"
    assert rows["database_url"]["from"] == "POSTROOM_DATABASE_URL"
    assert "kanarienvogel" not in shell.out
    assert shell("settings") == 0
    assert shell.out.splitlines()[0].split() == ["SETTING", "VALUE", "FROM"]
    assert "kanarienvogel" not in shell.out


def test_migrate_checks_then_applies_then_is_up_to_date(shell: Shell):
    assert shell("migrate", "--check", "--json") == 1
    pending = shell.json()[0]["pending"]
    assert pending
    assert shell("migrate", "--json") == 0
    assert shell.json() == [{"applied": pending}]
    assert shell("migrate", "--check") == 0
    assert shell.out == "up to date\n"


def enqueue(folder: Path, *types: str) -> list[str]:
    """Fills a migrated database with jobs, and answers with their ids."""
    catalogue = Catalogue(*(JobType(name) for name in types))
    jobs = [new_job(catalogue, name, {"n": index}, key=f"key-{index}") for index, name in enumerate(types)]

    async def fill() -> None:
        database = SqliteDatabase(folder / "postroom-data" / "postroom.sqlite3")
        await database.run(enqueue_many(jobs, datetime.now(UTC)))
        await database.close()

    asyncio.run(fill())
    return [str(job.id) for job in jobs]


def test_jobs_are_listed_newest_first_and_by_state_and_type(shell: Shell):
    assert shell("migrate") == 0
    assert shell("jobs", "list", "--json") == 0
    assert shell.out == ""
    first, second = enqueue(shell.folder, "classify", "labels.sync.gmail")
    assert shell("jobs", "list", "--json") == 0
    assert [row["id"] for row in shell.json()] == [second, first]
    assert shell("jobs", "list", "--json", "--type", "classify") == 0
    assert [row["id"] for row in shell.json()] == [first]
    assert shell("jobs", "list", "--json", "--limit", "1") == 0
    assert [row["id"] for row in shell.json()] == [second]
    assert shell("jobs", "list", "--state", "failed") == 0
    assert shell.out.splitlines() == ["ID  TYPE  STATE  PRIORITY  ATTEMPTS  NOT BEFORE  UPDATED AT  LAST ERROR"]


def test_a_job_is_shown_canceled_and_retried(shell: Shell):
    assert shell("migrate") == 0
    (job,) = enqueue(shell.folder, "classify")
    assert shell("jobs", "show", job, "--json") == 0
    (shown,) = shell.json()
    assert (shown["state"], shown["payload"], shown["idempotency_key"]) == ("queued", {"n": 0}, "key-0")
    assert datetime.fromisoformat(shown["created_at"]).tzinfo is not None
    assert shell("jobs", "cancel", job) == 0
    assert shell.out == "The job is canceled.\n"
    assert shell("jobs", "cancel", job) == 1
    assert "cannot become canceled" in shell.err
    assert shell("jobs", "retry", job, "--json") == 0
    assert shell.json() == [{"done": "The job is queued again."}]
    assert shell("jobs", "show", job) == 0
    assert "state             queued" in shell.out
    assert "retried" in shell.out


def test_what_is_done_to_jobs_is_audited_with_who_did_it(shell: Shell):
    assert shell("migrate") == 0
    one, *_ = enqueue(shell.folder, "classify", "unsnooze.gmail", "labels.sync.gmail")
    assert shell("jobs", "cancel", one) == 0
    assert shell("jobs", "retry", one) == 0
    assert shell("jobs", "cancel", "--state", "queued", "--yes") == 0
    assert shell("jobs", "retry", "--state", "canceled", "--yes") == 0
    assert shell("audit", "list", "--json") == 0
    entries = [row for row in reversed(shell.json()) if row["action"].startswith("job.")]
    assert [row["action"] for row in entries] == ["job.cancel", "job.retry", "job.cancel_many", "job.retry_many"]
    assert {row["actor"] for row in entries} == {f"cli:{getpass.getuser()}"}
    assert entries[0]["object_id"] == one
    assert entries[3]["after"]["asked"] == {"state": "canceled"}
    assert entries[3]["after"]["done"] == 3


def test_many_jobs_are_counted_first_and_nothing_is_done_without_a_yes(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    assert shell("migrate") == 0
    enqueue(shell.folder, "classify", "labels.sync.gmail", "classify")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shell("jobs", "cancel", "--state", "queued") == 1
    assert "3 jobs (2 classify, 1 labels.sync.gmail) would be canceled. Do it? [y/N]" in shell.err
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert shell("jobs", "cancel", "--type", "classify") == 0
    assert shell.out.strip() == "Canceled: 2 of 2 jobs."
    assert shell("jobs", "cancel", "--type", "classify", "--yes", "--json") == 0
    assert shell.json() == [{"matched": 0, "done": 0, "by_type": {}}]
    assert shell("jobs", "cancel") == 2
    assert "give the id of a job, or --type, --state, --error or --account" in shell.err


def test_a_job_that_does_not_exist_is_an_error_that_says_where_to_look(shell: Shell):
    assert shell("migrate") == 0
    for command in ("show", "retry", "cancel"):
        assert shell("jobs", command, "01997000-0000-7000-8000-000000000000") == 1
        assert "`postroom jobs list`" in shell.err
        assert shell("jobs", command, "not-an-id") == 2
        assert "ID" in shell.err


def test_an_unknown_state_of_jobs_is_refused_with_those_that_exist(shell: Shell):
    assert shell("jobs", "list", "--state", "sleeping") == 2
    assert "use one of queued, running, completed, failed, canceled" in shell.err


def test_the_doctor_finds_a_new_installation_in_order_and_leaves_it_alone(shell: Shell):
    assert shell("doctor", "--json") == 0
    assert {row["verdict"] for row in shell.json()} <= {"ok", "warn"}
    assert "postroom init" in shell.json()[-1]["found"], "it ends with the next thing to do"
    assert list(shell.folder.iterdir()) == []


def test_the_doctor_asks_for_the_migration_and_is_content_after_it(shell: Shell):
    (shell.folder / "postroom-data").mkdir(mode=0o700)
    (shell.folder / "postroom-data" / "postroom.sqlite3").touch(mode=0o600)
    assert shell("doctor") == 1
    assert shell.out.startswith("fail  schema")
    assert shell.out.splitlines()[-1].startswith("Next: schema: stop Postroom and run `postroom upgrade`")
    assert shell("migrate") == 0
    assert shell("doctor", "--json") == 0
    checks = {row["name"]: row for row in shell.json()}
    names = ["database", "schema", "journal", "durability", "integrity", "sqlite library", "clock", "leader"]
    assert [checks[name]["verdict"] for name in names] == ["ok"] * len(names)


def test_the_doctor_reports_a_database_that_cannot_be_opened(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POSTROOM_DATABASE_URL", "postgresql://ada:kanarienvogel@h/d")
    shell.application.error = DatabaseUnavailable("postgresql://ada:kanarienvogel@h/d does not answer")
    assert shell("doctor") == 1
    assert "fail  database       postgresql://ada:***@h/d does not answer" in shell.out
    assert "POSTROOM_DATABASE_URL" in shell.out


def test_a_table_is_aligned_text_and_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]):
    rows = [{"id": 1, "last_error": "a\nb", "more": [1]}, {"id": 22, "last_error": None, "more": []}]
    show_list(rows, ("id", "last_error"), as_json=False)
    assert capsys.readouterr().out == "ID  LAST ERROR\n1   a\\nb\n22  -\n"
    show_list(rows, ("id", "last_error"), as_json=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows


def test_cells_are_words_people_read():
    assert cell(True) == "yes"
    assert cell(["a", None]) == "a, -"
    assert cell("\x1b[31mred") == "\\x1b[31mred"
    assert cell(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)).startswith("2026-01-0")


SERVES_UNTIL_STOPPED = """
import asyncio, sys
from postroom.interfaces.cli import run

class Waiting:
    async def serve(self, settings, *, ready, invite, presses):
        ready("here")
        sys.stdout.flush()
        try:
            await asyncio.Event().wait()
        finally:
            print("cleaned up", flush=True)

run(Waiting(), ["serve"])
"""


def test_ctrl_c_cleans_up_and_exits_130_without_a_traceback(tmp_path: Path):
    command = [sys.executable, "-c", SERVES_UNTIL_STOPPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Postroom is at here  (Ctrl-C stops it)\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert out == "cleaned up\n"
    assert err == ""
    assert process.returncode == 130
