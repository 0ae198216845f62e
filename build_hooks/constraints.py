"""The versions that Postroom was tested with, for those who install its wheel: `constraints.txt`, printed."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = "requirements-discord.lock"


def constraints(lock: str) -> str:
    """The versions of a lock, without hashes, so that installers apply them to a wheel file too."""
    return "".join(line.removesuffix(" \\") + "\n" for line in lock.splitlines() if line[:1].isalnum())


if __name__ == "__main__":
    print(constraints((ROOT / SHIPPED).read_text("utf-8")), end="")
