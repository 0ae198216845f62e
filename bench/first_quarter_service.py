"""The service of the machine, where no systemd runs: the commands of docs/how-to/service.md, in a folder that stands
for the machine, and then the unit that they wrote, as it says.
"""

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.documents import DOCS, commands_in
from support.imap_server import free_ports
from support.installing import run
from support.patience import PATIENCE_S

ACCOUNT = 10001
EMULATED_SERVICE = (
    "no systemd runs; the unit's command was started with its environment, folders and umask by a user without rights "
    "in place of `postroom`, and said READY=1; its sandbox was not applied; /opt, /usr/local, /etc and /var/lib are "
    "folders of the script"
)
# Who types `sudo` is root here already; another user is one without a name.
SUDO = f"""#!/bin/sh
if [ "$1" = -u ]; then
    shift 2
    exec setpriv --reuid={ACCOUNT} --regid={ACCOUNT} --clear-groups -- "$@"
fi
exec env "$@"
"""
PLACES = ("/opt", "/usr/local", "/var/lib")


@dataclass(frozen=True, slots=True)
class SetUp:
    """A service that is installed: its unit, its data folder, the command that connects a mailbox, the environment in
    which all of them were typed, and how many inputs that took.
    """

    unit: Path
    data: Path
    asking: list[str]
    home: Mapping[str, str]
    inputs: int


def set_up_service(folder: Path, home: Mapping[str, str]) -> SetUp:
    """Install Postroom and its service by the first commands of the page."""
    sudo = folder / "programs/sudo"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    for each in PLACES:
        (folder / each[1:]).mkdir(parents=True)
    home = {**home, "PATH": f"{folder}/usr/local/bin:{home['PATH']}"}
    below = re.compile(rf"(?<![\w/])(?={'|'.join(PLACES)})")
    install, serve, ask = below.sub(str(folder), commands_in(DOCS / "how-to/service.md")[0]).splitlines()
    assert "--yes" in serve, "else the yes is an input too"
    for command in (install, f"{serve} --root {folder}"):
        run(["bash", "-euc", command], folder, dict(home))
    unit = folder / "etc/systemd/system/postroom.service"
    # The unit names the places of a machine.
    unit.write_text(unit.read_text().replace("/var/lib", f"{folder}/var/lib"))
    return SetUp(unit, folder / "var/lib/postroom", shlex.split(ask), home, inputs=2)


@contextmanager
def serving_as_systemd_would(service: SetUp) -> Generator[None]:
    """Make the unit's folder, start its command as its user, and wait until it reports that it is ready."""
    said = re.findall(r"^(\w+)=(.*)$", service.unit.read_text(), re.MULTILINE)
    unit = dict(said)
    given = dict(shlex.split(value)[0].split("=", 1) for name, value in said if name == "Environment")
    service.data.mkdir(mode=int(unit["StateDirectoryMode"], 8))
    os.chown(service.data, ACCOUNT, ACCOUNT)
    heard = service.data.parent / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(heard))
        os.chown(heard, ACCOUNT, ACCOUNT)
        listening.settimeout(PATIENCE_S)
        process = subprocess.Popen(
            shlex.split(unit["ExecStart"].removeprefix(":")),
            cwd=shlex.split(unit["WorkingDirectory"])[0],
            env={
                "NOTIFY_SOCKET": str(heard),
                "POSTROOM_WEB_PORT": str(free_ports(1)[0]),
                **given,
            },
            user=ACCOUNT,
            group=ACCOUNT,
            extra_groups=[],
            umask=int(unit["UMask"], 8),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert listening.recv(100) == b"READY=1"
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
