"""A page that is open while Postroom restarts: its forms still work, with sign-in off."""

import json
import re
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from postroom.operations.people.owner_token import FILE, owner_token
from support.command import POSTROOM, environment
from support.patience import PATIENCE_S

TOKEN = re.compile(r'id="form-token" value="([^"]+)"')


@contextmanager
def served_anew(folder: Path) -> Generator[str]:
    """Serve in a process that shares nothing with the one before, not even what a fork would."""
    command = [*POSTROOM, "serve", "--port", "0", "--json"]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder, None), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.kill()
        process.communicate()


def test_a_form_of_a_page_from_before_a_restart_is_accepted_and_a_forged_one_is_not(tmp_path: Path) -> None:
    tokens: list[str] = []
    for _ in range(2):
        with served_anew(tmp_path) as address, httpx2.Client(base_url=address, timeout=PATIENCE_S) as page:
            found = TOKEN.search(page.get("/").text)
            assert found is not None
            tokens.append(found[1])
            forms = {"form_token": tokens[0]}, {"form_token": "x" * len(tokens[0])}
            origin = {"Sec-Fetch-Site": "same-origin"}
            assert [page.post("/pause", data=each, headers=origin).status_code for each in forms] == [303, 403]
    assert tokens[0] != tokens[1]


def test_the_secret_is_private_made_once_and_replaced_if_it_is_damaged(tmp_path: Path) -> None:
    first = owner_token(tmp_path / "data")
    file = tmp_path / "data" / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert owner_token(tmp_path / "data") == first
    assert [each.name for each in file.parent.iterdir()] == [FILE]
    file.write_bytes(b"cut")
    second = owner_token(tmp_path / "data")
    assert second != first
    assert owner_token(tmp_path / "data") == second


def test_a_folder_that_cannot_be_written_gives_a_token_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    assert owner_token(tmp_path / "data") != owner_token(tmp_path / "data")
