"""The image, built from nothing and run as an engine would run it. Only `make soak` does (SOAK in conftest.py)."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from support.image import Images
from support.patience import PATIENCE_S

USER = 10001
MOST_MIB = 150
ENGINES = {"dev", "etc", "proc", "run", "sys", "tmp"}
"""Folders in which whoever runs a container writes."""


class Built(NamedTuple):
    images: Images
    config: dict[str, Any]
    environment: list[str]
    port: int


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    images = Images(tmp_path_factory.mktemp("images"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = images.build()
    yield Built(images, config, ["--env", f"POSTROOM_WEB_PORT={port}"], port)
    images.remove()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    os.chown(tmp_path / "data", USER, USER)
    return tmp_path / "data"


def arguments_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_it_serves_reports_its_health_stops_cleanly_and_keeps_its_data(built: Built, data: Path) -> None:
    serve = [*built.config["Entrypoint"], *built.config["Cmd"]]
    check, *health = built.config["Healthcheck"]["Test"]
    with built.images.container(data, *built.environment) as container:
        before = {str(each): each.lstat().st_mtime_ns for each in container.root.rglob("*")}
        with container.running(*serve) as process:
            assert first_line(process) == f"Postroom is at http://localhost:{built.port}  (Ctrl-C stops it)\n"
            assert "postroom person add NAME --role admin" in first_line(process)
            assert check == "CMD"
            assert container.run(*health).stdout == "ready\n"
            page = f"http://127.0.0.1:{built.port}/sign-in"
            assert httpx2.get(page, timeout=PATIENCE_S).status_code == 200
            assert httpx2.get(page, headers={"Host": "192.0.2.1"}, timeout=PATIENCE_S).status_code == 421
            added = container.run("postroom", "person", "add", "ada", "--role", "admin")
            assert f"http://localhost:{built.port}/sign-in/once#" in added.stdout
            (pid,) = [each for each in container.pids() if "/opt/postroom/bin/python" in arguments_of(each)]
            assert os.stat(f"/proc/{pid}").st_uid == USER
            os.kill(pid, getattr(signal, built.config["StopSignal"]))
            _, log = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, log
            assert "sign-in/once#" not in log
        assert container.run(*health).returncode == 1
        after = {str(each): each.lstat().st_mtime_ns for each in container.root.rglob("*")}
        written = {name for name in after if after[name] != before.get(name)}
        assert not {name for name in written if Path(name).relative_to(container.root).parts[0] not in ENGINES}, written
    with built.images.container(data, *built.environment) as again:
        assert "ada" in again.run("postroom", "person", "list").stdout


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_volume_of_another_user_is_refused_in_one_sentence(built: Built, tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with built.images.container(tmp_path, *built.environment) as container:
        refused = container.run("postroom", "serve")
    assert refused.returncode == 1
    (sentence,) = [each for each in refused.stderr.splitlines() if each.startswith("postroom: ")]
    assert "Traceback" not in refused.stderr
    assert "/data" in sentence
    assert f"chown {USER}" in sentence


def test_it_contains_what_running_needs_and_no_more(built: Built, data: Path) -> None:
    assert built.config["User"] == f"{USER}:{USER}"
    assert list(built.config["Volumes"]) == ["/data"]
    with built.images.container(data) as container:
        program = container.root / "opt/postroom"
        files = [each for each in program.rglob("*") if each.is_file() and not each.is_symlink()]
        assert {each.name for each in (program / "bin").iterdir()} & {"pip", "uv", "npm", "node"} == set()
        assert not [each for each in files if each.suffix == ".pyc"]
        assert not (container.root / "src").exists()
        size = sum(each.stat().st_size for each in files) / 2**20
        assert size < MOST_MIB, json.dumps({"MiB": size})
        assert {each.stat().st_uid for each in files} == {0}, "the user of the image cannot change the program"
