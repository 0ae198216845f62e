"""`make audit` distinguishes a clean result, a known vulnerability, and a database that could not be asked."""

import http.server
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.axe import build_hook
from support.postgres import free_port

ROOT = Path(__file__).resolve().parents[2]
FAULT = {
    "id": "PYSEC-2026-1",
    "summary": "made up",
    "details": "made up",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }
    ],
}


@contextmanager
def faults_database(faulty: str | None) -> Generator[str]:
    """An OSV database on loopback that knows a fault of one package, or of none."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = [FAULT] if asked["package"]["name"] == faulty else []
            body = json.dumps({"vulns": known} if known else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


def audit(osv_url: str, *options: str) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "build_hooks" / "audit.py"), "--osv-url", osv_url, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_known_fault_is_named_with_the_version_that_fixes_it():
    with faults_database("jinja2") as url:
        code, told = audit(url, "requirements.lock")
    assert code == 1, told
    assert re.search(r"requirements\.lock: jinja2 \S+ has PYSEC-2026-1; mended in 99", told)


def test_nothing_known_is_a_clean_end_and_the_bills_name_what_is_shipped(tmp_path: Path):
    with faults_database(None) as url:
        code, told = audit(url, "--into", str(tmp_path))
    assert code == 0, told
    python = json.loads((tmp_path / "postroom-python.cdx.json").read_bytes())
    assert {"apsw", "asyncpg", "discord-py"} <= {each["name"].replace(".", "-") for each in python["components"]}
    browser = json.loads((tmp_path / "postroom-browser.cdx.json").read_bytes())
    assert "htmx.org" in {each["name"] for each in browser["components"]}


def test_a_database_that_cannot_be_asked_is_no_clean_end():
    code, told = audit(f"http://127.0.0.1:{free_port()}/v1/query", "requirements.lock")
    assert code == 2, told
    assert "requirements.lock: not checked" in told


@pytest.mark.parametrize("lock", sorted(each.name for each in ROOT.glob("requirements*.lock")))
def test_every_locked_package_has_a_hash_and_no_lock_names_where_it_comes_from(lock: str):
    text = (ROOT / lock).read_text()
    pinned = re.findall(r"^[A-Za-z0-9][^\n]*?==[^\n]*(?:\n    --hash=[^\n]*)*", text, re.MULTILINE)
    assert pinned
    assert [each.splitlines()[0] for each in pinned if "--hash=sha256:" not in each] == []
    assert not re.search(r"https?://|--(extra-)?index-url", text)


def test_nothing_is_installed_without_its_hash():
    """By the Makefile, and by what the documentation tells people to type."""
    pages = [ROOT / "Makefile", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    commands = [
        (page.name, line.strip())
        for page in pages
        for line in page.read_text().splitlines()
        if re.search(r"\b(pip|pipx) (install|sync)\b|\bnpm install\b(?!.*--package-lock-only)", line)
    ]
    ours = "--no-deps --build-constraints requirements-dev.lock --editable ."
    released = re.compile(r"--constraint .*dist/constraints.txt\"? dist/postroom-\*\.whl")
    allowed = [
        each for each in commands if "--require-hashes" in each[1] or ours in each[1] or released.search(each[1])
    ]
    assert commands == allowed
    assert len(commands) >= 4, "the search itself finds what there is"


def test_what_the_build_needs_is_locked_with_the_rest():
    """The tools of a build are constrained to the lock, so they are checked by its hashes."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = (ROOT / "requirements-dev.lock").read_text()
    assert [each for each in (*needed, build_hook().NODE, "editables==") if f"\n{each}" not in f"\n{locked}"] == []
