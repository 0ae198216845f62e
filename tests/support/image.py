"""The image, built by buildah on a base that mmdebstrap makes from Debian's packages, and containers of it.

No registry and no container engine is needed: everything runs in a chroot, on the network of this machine. The build
trusts the certificates that this machine trusts, and nothing else of it is seen there.
"""

import json
import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.patience import PATIENCE_S
from support.programs import system_program

ROOT = Path(__file__).parents[2]
RELEASE = "bookworm"
PACKAGES = "ca-certificates,python3,python3-venv"
CERTIFICATES = "/etc/ssl/certs"
BUILD_S = 1800
CHROOT = ("--isolation", "chroot")


class Images:
    """A store of images in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = system_program("buildah")
        self._buildah = [program, "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]

    def call(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [*self._buildah, *map(str, arguments)], capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        assert done.returncode == 0, f"buildah {arguments}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout.strip()

    def build(self) -> dict[str, Any]:
        """Build the base and the image; its configuration."""
        self.build_base()
        return self.build_image()

    def build_base(self) -> None:
        """Make what an engine would fetch."""
        base = self.folder / "base.tar"
        command = [system_program("mmdebstrap"), "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(base)]
        subprocess.run(command, check=True, capture_output=True, timeout=BUILD_S)
        empty = self.call("from", "scratch")
        self.call("add", empty, base, "/")
        self.call("commit", "--rm", empty, "base")
        base.unlink()

    def build_image(self) -> dict[str, Any]:
        """Build the image on that base; its configuration."""
        trusting = self.folder / "uv.toml"
        trusting.write_text("system-certs = true\n")
        mounts = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--volume", f"{trusting}:/etc/uv/uv.toml:ro"]
        format_of_docker = ["--format", "docker", "--layers=false"]  # the other one has no health check
        self.call(
            "build",
            *CHROOT,
            *format_of_docker,
            *mounts,
            "--build-arg",
            "BASE=localhost/base",
            "--tag",
            "postroom",
            ROOT,
        )
        return json.loads(self.call("inspect", "--type", "image", "postroom"))["Docker"]["config"]

    def remove(self) -> None:
        self.call("rm", "--all")
        self.call("rmi", "--all", "--force")

    @contextmanager
    def container(self, data: Path, *environment: str) -> Generator["Container"]:
        """A new container with this folder as its volume."""
        name = self.call("from", "postroom")
        # An engine mounts a volume over that of the image; buildah would mount one of its own over ours.
        self.call("config", "--volume", "/data-", name)
        try:
            yield Container(self, name, ["--volume", f"{data}:/data", *environment])
        finally:
            self.call("rm", name)

    def run_command(self, name: str, options: Sequence[str], command: Sequence[str]) -> list[str]:
        return [*self._buildah, "run", *CHROOT, *options, name, "--", *command]


class Container:
    """One container, in which several commands may run at once, as with `docker exec`."""

    def __init__(self, images: Images, name: str, options: Sequence[str]) -> None:
        self.root = Path(images.call("mount", name))
        self._images, self._name, self._options = images, name, options

    def command(self, *command: str) -> list[str]:
        """A command in it, as this machine runs it."""
        return self._images.run_command(self._name, self._options, command)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        started = self.command(*command)
        return subprocess.run(started, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    @contextmanager
    def running(self, *command: str) -> Generator[subprocess.Popen[str]]:
        started = self.command(*command)
        with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                for pid in self.pids():
                    os.kill(pid, 9)

    def pids(self) -> list[int]:
        """The processes that run in it: those whose root is its own."""
        return [int(each.name) for each in Path("/proc").glob("[0-9]*") if self._is_inside(each)]

    def _is_inside(self, process: Path) -> bool:
        try:
            inside = (process / "root").stat()
        except OSError:
            return False
        own = self.root.stat()
        return (inside.st_dev, inside.st_ino) == (own.st_dev, own.st_ino)
