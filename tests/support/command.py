"""The `postroom` command as a person starts it: real processes with their own settings."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.patience import PATIENCE_S

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
def running(
    folder: Path, *arguments: str, database_url: str | None = None, more: dict[str, str] | None = None
) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*POSTROOM, *arguments],
        cwd=folder,
        env=environment(folder, database_url) | (more or {}),
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
