"""From nothing to a preview of one's own mailbox: `python -m bench.first_quarter [uv] [pipx] [pip] [clone] [container]
[service]`.

Each way in begins in an empty home without a cache, and types what its page says (docs/how-to/install.md, container.md
and service.md), then `postroom init`, until the preview of a real mailbox is there: a Dovecot on loopback, whose server
and certificate are options, where a mailbox elsewhere would be found by its address. Every command and every answer
counts as one input. Whatever stands for a container engine or for systemd here is printed with the figures.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.first_quarter_service import EMULATED_SERVICE, serving_as_systemd_would, set_up_service
from support.dovecot import running_dovecot
from support.image import Container, Images
from support.imap_server import PASSWORD, ImapServer, authority, free_ports
from support.installing import INSTALL, PROGRAMS, ROOT, build_release, empty_home, run
from support.terminal import Terminal
from support.written_mail import MESSAGES, OWNER

WAYS = ("uv", "pipx", "pip", "clone", "container", "service")
MAIL = 200
AT_MOST_S, AT_MOST_INPUTS = 180, 6
QUESTIONS = {"How does Postroom reach your mailbox?": "", "Mail address: ": OWNER, "Password: ": PASSWORD}
PREVIEWED = "Which starter rules do you want?"


@dataclass(frozen=True, slots=True)
class Quarter:
    """What one way in took, and what it left on the disk."""

    way: str
    installed_s: float
    previewed_s: float
    inputs: int
    installed_mb: int
    emulated: str = ""

    def __str__(self) -> str:
        figures = (
            f"{self.way:<9} installed after {self.installed_s:5.1f} s ({self.installed_mb} MB), preview "
            f"{self.previewed_s - self.installed_s:5.1f} s later, {self.previewed_s:5.1f} s in all, "
            f"{self.inputs} inputs"
        )
        return f"{figures}\n{' ' * 10}Here: {self.emulated}." if self.emulated else figures


def measure(way: str, server: ImapServer, dist: Path, folder: Path) -> Quarter:
    """Take one way, in an empty folder."""
    if way == "container":
        return _measure_container(server, folder)
    if way == "service":
        return _measure_service(server, dist)
    home = _home(folder, {"python3": Path(sys.executable), **({way: PROGRAMS / way} if way[0] in "up" else {})})
    begun = time.monotonic()
    inputs = _from_a_clone(folder, home) if way == "clone" else _from_files(way, dist, folder, home)
    installed_s = time.monotonic() - begun
    program = next(each for each in _places(folder) if each.exists())
    inputs += _preview([str(program), "init"], server, folder, home)
    return Quarter(way, installed_s, time.monotonic() - begun, inputs, _size_mb(program))


def _measure_container(server: ImapServer, folder: Path) -> Quarter:
    """`docker build`, `docker run` and `docker exec -it postroom postroom init`."""
    images, data = Images(folder), folder / "data"
    try:
        begun = time.monotonic()
        images.build_base()
        fetched_s, begun = time.monotonic() - begun, time.monotonic()
        config = images.build_image()
        installed_s = time.monotonic() - begun
        data.mkdir(mode=0o700)
        os.chown(data, *map(int, config["User"].split(":")))
        with images.container(data, "--env", f"POSTROOM_WEB_PORT={free_ports(1)[0]}") as container:
            with container.running(*config["Entrypoint"], *config["Cmd"]) as serving:
                assert serving.stdout is not None
                serving.stdout.readline()
                inputs = 2 + _preview(_inside(container), server, data, os.environ, Path("/data"))
                previewed_s = time.monotonic() - begun
            size = _size_mb(container.root / "opt/postroom/bin/postroom")
    finally:
        images.remove()
    emulated = (
        f"buildah in a chroot instead of an engine, and {fetched_s:.1f} s of mmdebstrap, not counted, instead of a "
        "download of python:3.13-slim"
    )
    return Quarter("container", installed_s, previewed_s, inputs, size, emulated)


def _inside(container: Container) -> list[str]:
    """`docker exec -it postroom postroom init`."""
    command = container.command("postroom", "init")
    at = command.index("run") + 1
    return [*command[:at], "--terminal", *command[at:]]


def _measure_service(server: ImapServer, dist: Path) -> Quarter:
    """The commands of the page; the account of the service has to find all that it reads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        home = _home(folder, {"pipx": PROGRAMS / "pipx"}) | {"PIPX_DEFAULT_PYTHON": "/usr/bin/python3"}
        shutil.copytree(dist, folder / "dist")
        begun = time.monotonic()
        service = set_up_service(folder, home)
        installed_s = time.monotonic() - begun
        with serving_as_systemd_would(service):
            inputs = service.inputs + _preview(service.asking, server, service.data, service.home)
            previewed_s = time.monotonic() - begun
        program = (folder / "usr/local/bin/postroom").resolve()
        return Quarter("service", installed_s, previewed_s, inputs, _size_mb(program), EMULATED_SERVICE)


def _home(folder: Path, programs: Mapping[str, Path]) -> dict[str, str]:
    """An empty home, without the caches that this machine has."""
    caches = {"UV_CACHE_DIR": str(folder / ".cache/uv"), "PIP_NO_CACHE_DIR": "1", "PIPX_DEFAULT_BACKEND": "pip"}
    return empty_home(folder, programs) | caches


def _places(folder: Path) -> list[Path]:
    return [folder / each / "postroom" for each in (".local/bin", "postroom/bin", "clone/.venv/bin")]


def _from_files(way: str, dist: Path, folder: Path, home: dict[str, str]) -> int:
    """Run the commands of the page that install; how many there are."""
    shutil.copytree(dist, folder / "dist")
    commands = [line for line in INSTALL[way].splitlines() if not line.endswith("--version")]
    run(["bash", "-euc", "\n".join(commands)], folder, home)
    return len(commands)


def _from_a_clone(folder: Path, home: dict[str, str]) -> int:
    """`make run`, until the demo is there, and Ctrl-C."""
    run(["git", "clone", "--quiet", ROOT, folder / "clone"], folder, home)
    given = home | {"POSTROOM_WEB_PORT": "0"}
    log = (folder / "demo.log").open("w")
    with (
        subprocess.Popen(
            ["make", "run"],
            cwd=folder / "clone",
            env=given,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        ) as demo,
        log,
    ):
        assert demo.stdout is not None
        if not any("Postroom is at" in line for line in demo.stdout):
            raise RuntimeError(f"make run did not start the demo:\n{(folder / 'demo.log').read_text()}")
        os.killpg(demo.pid, signal.SIGINT)
        demo.stdout.read()
    return 2


def _preview(
    init: Sequence[str], server: ImapServer, folder: Path, home: Mapping[str, str], seen: Path | None = None
) -> int:
    """`postroom init` up to the preview; how many inputs it took. The program sees the folder as `seen`."""
    user = server.new_user()
    _fill(server, user)
    authority().cert_pem.write_to_path(str(folder / "ca.pem"))
    found = [
        "--imap-host",
        "127.0.0.1",
        "--imap-port",
        str(server.tls_port),
        "--ca-file",
        str((seen or folder) / "ca.pem"),
    ]
    ours, theirs = os.openpty()
    command = [*init, "--user", user, *found]
    with subprocess.Popen(command, cwd=folder, env=home, stdin=theirs, stdout=theirs, stderr=theirs) as asking:
        os.close(theirs)
        terminal = Terminal(ours, asking)
        for question, answer in QUESTIONS.items():
            terminal.read_until(question)
            terminal.type(f"{answer}\n")
        terminal.read_until(PREVIEWED)
        asking.kill()
    os.close(ours)
    return 1 + len(QUESTIONS)


def _fill(server: ImapServer, user: str) -> None:
    client = server.second_client(user)
    for number in range(MAIL):
        content = MESSAGES[number % len(MESSAGES)].raw(number).replace(b"\n", b"\r\n")
        client.append("INBOX", "", "", content)
    client.logout()


def _size_mb(program: Path) -> int:
    """The environment of this program, with all that it has compiled meanwhile."""
    files = [each for each in program.resolve().parents[1].rglob("*") if each.is_file() and not each.is_symlink()]
    return sum(each.stat().st_size for each in files) // 1_000_000


def main() -> int:
    found: list[Quarter] = []
    with tempfile.TemporaryDirectory() as name, running_dovecot() as server:
        dist = build_release(Path(name) / "dist")
        for way in sys.argv[1:] or WAYS:
            folder = Path(name) / way
            folder.mkdir()
            found.append(measure(way, server, dist, folder))
            print(found[-1], flush=True)
    slow = [each.way for each in found if each.previewed_s > AT_MOST_S or each.inputs > AT_MOST_INPUTS]
    print(f"Goal: {AT_MOST_S} s and {AT_MOST_INPUTS} inputs. Missed by: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
