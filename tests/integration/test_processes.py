"""The product as a person starts it: real processes, real signals, the command line."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60
POSTROOM = [sys.executable, "-c", "from postroom.app import main; main()"]


def environment(folder: Path, database_url: str | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    kept["POSTROOM_DATA_DIR"] = str(folder / "data")
    if database_url is not None:
        kept["POSTROOM_DATABASE_URL"] = database_url
    return kept


def postroom(folder: Path, *arguments: str, database_url: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*POSTROOM, *arguments],
        cwd=folder,
        env=environment(folder, database_url),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@contextmanager
def running(folder: Path, *arguments: str, database_url: str | None = None) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*POSTROOM, *arguments],
        cwd=folder,
        env=environment(folder, database_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def announced(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())["url"]


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_serves_its_page_and_ends_cleanly_on_a_signal(tmp_path: Path, stop: signal.Signals) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        assert "Postroom" in page(announced(process))
        process.send_signal(stop)
        _, complaints = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "Traceback" not in complaints


def test_what_the_demo_did_can_be_looked_at_with_the_command_line(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        announced(process)
        assert process.stderr is not None
        for line in process.stderr:
            if "connector.looked_back" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    demo = str(tmp_path / "data" / ".postroom-demo")
    listed = postroom(tmp_path, "jobs", "list", "--json", "--data-dir", demo)
    jobs = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {"classify"} <= {job["type"] for job in jobs}
    shown = json.loads(postroom(tmp_path, "jobs", "show", jobs[0]["id"], "--json", "--data-dir", demo).stdout)
    assert shown["id"] == jobs[0]["id"]
    listed = postroom(tmp_path, "rules", "list", "--json", "--data-dir", demo)
    rules = [json.loads(line) for line in listed.stdout.splitlines()]
    assert "Newsletters out of the inbox" in {rule["name"] for rule in rules}
    assert not (tmp_path / "data" / "postroom.sqlite3").exists(), "the user's own folder is left alone"


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        port = announced(process).rsplit(":", 1)[1]
        other = tmp_path / "other"
        other.mkdir()
        refused = postroom(other, "demo", "--port", port)
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert port in refused.stderr


def test_the_command_line_migrates_checks_and_heals(tmp_path: Path, database_url: str | None) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return postroom(tmp_path, *arguments, database_url=database_url)

    early = run("jobs", "list")
    assert early.returncode == 1
    assert "postroom migrate" in early.stderr
    assert run("migrate", "--check").returncode == 1
    assert run("migrate").returncode == 0
    assert run("migrate", "--check").returncode == 0
    checked = run("doctor", "--json")
    checks: list[dict[str, Any]] = [json.loads(line) for line in checked.stdout.splitlines()]
    assert checks
    assert not [check for check in checks if check["verdict"] == "fail"], checks
    missing = run("jobs", "retry", "01a1de5c-09c4-78e3-a216-7adf44d56315")
    assert missing.returncode == 1
    assert "there is no job" in missing.stderr


def test_a_worker_process_starts_and_stops_on_either_database(tmp_path: Path, database_url: str | None) -> None:
    with running(tmp_path, "worker", database_url=database_url) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worker.started" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
