"""Files that commands read and write, each named by an argument or an option."""

from pathlib import Path

from postroom.core.errors import BadInput

LARGEST_FILE = 8 * 1024 * 1024 + 1


def read_bytes(
    path: Path, largest: int = LARGEST_FILE, option: str = "FILE", remedy: str = "give another file"
) -> bytes:
    """The first `largest` bytes of the file that an option names."""
    try:
        with path.open("rb") as file:
            return file.read(largest)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(option, f"{str(path)!r} cannot be read ({reason})", remedy) from None


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput("FILE", f"{str(path)!r} is not UTF-8", "save it as UTF-8") from None


def write_text(path: Path, text: str, option: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problem = f"{str(path)!r} cannot be written ({reason})"
        raise BadInput(option, problem, "name a file in a writable folder") from None
