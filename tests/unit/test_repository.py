"""The repository holds text that we wrote and the pictures of the pages. Packages are installed, never committed."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 2**20
# The pictures of the pages, made by `make screenshots`; nothing else may be anything but text.
PICTURES = "docs/screenshots/*.png"


def unwanted(root: Path, names: list[str]) -> dict[str, str]:
    """The files that do not belong in the repository, each with the reason."""
    found: dict[str, str] = {}
    for name in names:
        content = (root / name).read_bytes()
        if len(content) > MOST_BYTES:
            found[name] = "larger than 1 MiB"
        elif not Path(name).match(PICTURES) and not is_text(content):
            found[name] = "not text"
    return found


def is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def test_the_repository_contains_no_binaries_and_nothing_large() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert len(names) > 1000, "git lists the files of the repository"
    assert unwanted(ROOT, names) == {}, "packages are installed by name; what is generated is not committed"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("some_1.0_amd64.deb", b"!<arch>\ndebian-binary\0", "not text"),
        ("latin.txt", "Grüße".encode("latin-1"), "not text"),
        ("docs/logo.png", b"\x89PNG\r\n\x1a\n\0", "not text"),
        ("data.csv", b"1,2\n" * 2**18 + b"3", "larger than 1 MiB"),
    ],
)
def test_a_binary_or_a_large_file_is_found(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    assert unwanted(tmp_path, [name]) == {name: reason}
