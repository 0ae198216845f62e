"""The `postroom` command as a person starts it: real processes with their own settings."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.warm_start import ForkedProcess, run_command

# Where no mailbox answers: the connector waits for it, and everything else works.
NO_MAILBOX = {
    "POSTROOM_ACCOUNT_EMAIL": "ada@example.com",
    "POSTROOM_GMAIL_BASE_URL": "http://127.0.0.1:1",
    "POSTROOM_GMAIL_TOKEN": "no mailbox",
}


# Sign-in has its own tests: elsewhere the pages and metrics are read as the owner, who needs none on this machine.
NO_SIGN_IN = {"POSTROOM_WEB_SIGN_IN": "false"}

POSTROOM = [sys.executable, "-c", "from postroom.app import main; main()"]


def environment(folder: Path, database_url: str | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    kept |= {"POSTROOM_DATA_DIR": str(folder / "data"), **NO_MAILBOX, **NO_SIGN_IN}
    if database_url is not None:
        kept["POSTROOM_DATABASE_URL"] = database_url
    return kept


def postroom(folder: Path, *arguments: str, database_url: str | None = None) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, folder, environment(folder, database_url))


@contextmanager
def running(
    folder: Path, *arguments: str, database_url: str | None = None, more: dict[str, str] | None = None
) -> Generator[ForkedProcess]:
    process = ForkedProcess(arguments, folder, environment(folder, database_url) | (more or {}))
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def announced(process: ForkedProcess) -> str:
    return json.loads(process.stdout.readline())["url"]
