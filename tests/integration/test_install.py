"""What strangers install: the wheel and the sdist, in an empty home; and what `make run` installs from a clone.

`make test` takes the Python it runs on. The soak takes every supported one that this machine has; conftest.py lists the
others as not tested. Other platforms are only resolved: every dependency has a wheel for them, but nothing is run.
"""

import ast
import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import httpx2
import pytest
from bench import first_quarter

from postroom import app
from support.imap_server import ImapServer
from support.installing import (
    INSTALL,
    PROGRAMS,
    REMOVE,
    ROOT,
    SUPPORTED,
    TOO_OLD,
    UV,
    attempt,
    build_release,
    empty_home,
    next_release,
    only,
    python_of,
    run,
)
from support.patience import PATIENCE_S
from support.scale import SOAK

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHONS = [each for each in SUPPORTED if python_of(each)] if SOAK else [THIS]
INSTALLERS = ["uv", "pipx", "pip"] if SOAK else ["uv"]
PLATFORMS = ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"]
CHANGES = {"postroom/CHANGELOG.md"}  # for `postroom upgrade --check`
VENDOR = "postroom/interfaces/dashboard/static/vendor"
WANTED = {f"{VENDOR}/{name}" for name in ("htmx.min.js", "hx-sse.min.js", "htmx.LICENSE.txt", "manifest.json")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `make release` leaves it, as far as installing needs it."""
    return build_release(tmp_path_factory.mktemp("release") / "dist")


def test_the_wheel_and_the_sdist_hold_all_files_and_what_the_pages_load(dist: Path) -> None:
    source = ROOT / "src"
    every = {str(each.relative_to(source)) for each in source.rglob("*") if each.is_file() and each.suffix != ".pyc"}
    assert every >= WANTED
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel, tarfile.open(only(dist, "*.tar.gz")) as sdist:
        assert {each for each in wheel.namelist() if ".dist-info/" not in each} == every | CHANGES
        assert {each.partition("/src/")[2] for each in sdist.getnames()} >= every


def test_a_build_from_the_sdist_needs_no_npm(dist: Path, tmp_path: Path) -> None:
    closed = {"npm_config_registry": "http://127.0.0.1:1/", "npm_config_fetch_retries": "0"}
    run(
        [UV, "build", "--wheel", "--out-dir", tmp_path, only(dist, "*.tar.gz")], tmp_path, empty_home(tmp_path) | closed
    )
    assert only(tmp_path, "*.whl").read_bytes() == only(dist, "*.whl").read_bytes()


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_commands_of_the_page_install_upgrade_and_remove_it_in_an_empty_home(
    dist: Path, tmp_path: Path, installer: str, version: str
) -> None:
    python = python_of(version)
    assert python is not None
    programs = {"python3": python, installer: PROGRAMS / installer}
    home = empty_home(tmp_path, {name: programs[name] for name in ("python3", installer) if name != "pip"})
    home |= {"UV_PYTHON": str(python), "PIPX_DEFAULT_PYTHON": str(python), "PIPX_DEFAULT_BACKEND": "pip"}
    shutil.copytree(dist, tmp_path / "dist")
    assert script(INSTALL[installer], tmp_path, home).endswith("postroom 0.1.0\n")
    (installed,) = [each for each in (tmp_path / "postroom/bin", tmp_path / ".local/bin") if each.exists()]
    run([installed / "postroom", "doctor"], tmp_path, home)
    assert not SOAK or serves_its_pages(installed / "postroom", tmp_path, home)
    next_release(tmp_path / "dist")
    again = INSTALL[installer].replace("pipx install", "pipx install --force")
    assert script(again, tmp_path, home).endswith("postroom 0.1.0.post1\n")
    script(REMOVE[installer], tmp_path, home)
    assert not (installed / "postroom").exists()


@pytest.mark.soak
@pytest.mark.parametrize("version", PYTHONS)
def test_pip_builds_it_from_the_sdist(dist: Path, tmp_path: Path, version: str) -> None:
    python = python_of(version)
    assert python is not None
    home = empty_home(tmp_path, {"python3": python})
    run(["python3", "-m", "venv", "venv"], tmp_path, home)
    run(["venv/bin/pip", "install", "--constraint", dist / "constraints.txt", only(dist, "*.tar.gz")], tmp_path, home)
    assert serves_its_pages(tmp_path / "venv/bin/postroom", tmp_path, home)


@pytest.mark.soak
@pytest.mark.parametrize("version", PYTHONS)
def test_it_runs_with_the_newest_version_of_everything_too(dist: Path, tmp_path: Path, version: str) -> None:
    home = empty_home(tmp_path, {"uv": UV}) | {"UV_PYTHON": str(python_of(version))}
    run(["uv", "tool", "install", only(dist, "*.whl")], tmp_path, home)
    assert serves_its_pages(tmp_path / ".local/bin/postroom", tmp_path, home)


@pytest.mark.soak
@pytest.mark.parametrize("way", first_quarter.WAYS)
def test_six_inputs_lead_from_nothing_to_the_preview_of_a_real_mailbox(
    dist: Path, dovecot: ImapServer, tmp_path: Path, way: str
) -> None:
    """How long it takes depends on the machine: `python -m bench.first_quarter` says."""
    assert first_quarter.measure(way, dovecot, dist, tmp_path).inputs <= first_quarter.AT_MOST_INPUTS


def script(commands: str, folder: Path, home: dict[str, str]) -> str:
    return run(["bash", "-euo", "pipefail", "-c", commands], folder, home)


def serves_its_pages(program: Path, folder: Path, home: dict[str, str]) -> bool:
    """Whether the demo of this installation answers with a page, and with what the page loads."""
    command = [program, "demo", "--json", "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            line = demo.stdout.readline()
            assert line, demo.communicate(timeout=PATIENCE_S)[1][-3000:]
            with httpx2.Client(base_url=json.loads(line)["url"], follow_redirects=True, timeout=PATIENCE_S) as browser:
                page = browser.get("/")
                loaded = [browser.get(each) for each in re.findall(r"\"(/static/[^\"]+)", page.text)]
                return bool(loaded) and all(each.is_success for each in (page, *loaded))
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate(timeout=PATIENCE_S)


@pytest.mark.soak
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_dependency_needs_a_compiler(dist: Path, platform: str, version: str) -> None:
    """Resolved for this platform, not run on it."""
    command = [UV, "pip", "compile", "--quiet", "--only-binary", ":all:", "--extra", "discord", "--no-header"]
    there = ["--python-platform", platform, "--python-version", version, "--constraints", dist / "constraints.txt"]
    assert "apsw==" in run([*command, *there, "pyproject.toml"], ROOT)


def test_an_older_python_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(SystemExit, match=r"^postroom: this is Python 3\.10\.13, and Postroom needs 3\.11 or newer\."):
        app.main()
    for module in ("app.py", "__init__.py"):
        ast.parse((ROOT / "src/postroom" / module).read_text("utf-8"), feature_version=(3, 7))


@pytest.mark.soak
@pytest.mark.parametrize("python", [each for each in (python_of(TOO_OLD),) if each], ids=[TOO_OLD])
def test_installers_refuse_an_older_python_and_leave_nothing(dist: Path, tmp_path: Path, python: Path) -> None:
    home = empty_home(tmp_path, {"python3": python, "uv": UV})
    run(["python3", "-m", "venv", "venv"], tmp_path, home)
    refused = attempt(["venv/bin/pip", "install", only(dist, "*.whl")], tmp_path, home)
    assert refused.returncode != 0
    assert re.search(r"requires a different Python: 3\.10\S* not in '>=3\.11'", refused.stderr)
    refused = attempt(["uv", "tool", "install", "--python", python, only(dist, "*.whl")], tmp_path, home)
    assert refused.returncode != 0
    assert "Python>=3.11" in refused.stderr
    assert not (tmp_path / ".local/bin/postroom").exists()
    loaded = attempt(
        ["python3", "-c", "from postroom.app import main; main()"], tmp_path, home | {"PYTHONPATH": str(ROOT / "src")}
    )
    assert re.fullmatch(r"postroom: this is Python 3\.10\S*, and Postroom needs 3\.11 or newer\..*\n", loaded.stderr)


def test_make_run_installs_what_running_needs_and_keeps_what_is_there(tmp_path: Path) -> None:
    make = ["make", "--dry-run", "--directory", tmp_path, "run"]
    for name in ("Makefile", "pyproject.toml", "package.json", "package-lock.json", "build_hooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    for lock in ROOT.glob("requirements*.lock"):
        (tmp_path / lock.name).symlink_to(lock)
    assert "--require-hashes requirements.lock" in run([*make], tmp_path)
    (tmp_path / ".venv").mkdir()
    for stamp, lock in ((".runs", "requirements.lock"), (".ready", "requirements-dev.lock")):
        (tmp_path / ".venv" / stamp).touch()
        assert "Installing" not in run([*make], tmp_path)
        assert f"--require-hashes {lock}" in run([*make, "--what-if", "pyproject.toml"], tmp_path)


@pytest.mark.soak
def test_make_dist_builds_what_the_page_installs_without_the_tools_of_development(tmp_path: Path) -> None:
    run(["git", "clone", "--quiet", ROOT, "clone"], tmp_path)
    run(["make", "dist"], tmp_path / "clone")
    script(INSTALL["uv"], tmp_path / "clone", empty_home(tmp_path, {"uv": UV}) | {"UV_PYTHON": sys.executable})
    assert not (tmp_path / "clone/.venv/bin/pytest").exists()


@pytest.mark.parametrize("python", ["/no/such/python", "false"])
def test_make_without_a_python_of_today_says_what_to_do(tmp_path: Path, python: str) -> None:
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    command: list[str | Path] = ["make", "--directory", tmp_path, "run", f"PYTHON={python}"]
    for name in re.findall(r"^SOURCES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "requirements.lock").touch()
    refused = attempt(command, tmp_path)
    assert refused.returncode == 2
    assert "Postroom needs Python 3.11 or newer: install it, or name it with PYTHON=" in refused.stdout
    assert not (tmp_path / ".venv").exists()
