"""Messages in files: an mbox, a Maildir, a folder of messages, or one message; read one at a time, never all at once.

A `.eml` file, and each file of a Maildir, is one message; any other file that begins with `From ` is an mbox. In a
folder with `.eml` or `.mbox` files only those are read; in any other, every file. Nothing is changed, locked or
created.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.mime import LARGEST_MESSAGE

MESSAGE_ENDINGS = (".eml", ".mbox", ".mbx")
LONGEST_STEP = 65_536
_MBOX = b"From "


class MailFile(NamedTuple):
    """One message: its path, its bytes, or why it cannot be read. In an mbox of several, `path` ends in its number."""

    path: str
    raw: bytes
    problem: str | None = None


def mail_in(path: Path) -> Iterator[MailFile]:
    """Every message at the path, in the order of file names. Large ones are cut, which `parse_message` reports."""
    try:
        is_folder = path.is_dir()
        exists = is_folder or path.exists()
        is_readable_again = is_folder or path.is_file()
    except (OSError, ValueError) as error:
        raise BadInput("PATH", f"{str(path)!r} cannot be read ({error})", "give another path") from None
    if not exists:
        raise BadInput("PATH", f"{str(path)!r} does not exist", "give an mbox, a Maildir, or a folder of .eml files")
    if not is_readable_again:
        remedy = "save the mail in a file first; it is read twice"
        raise BadInput("PATH", f"{str(path)!r} is neither a file nor a folder", remedy)
    return _in_folder(path) if is_folder else _in_file(path, may_be_mbox=True)


def _in_folder(folder: Path) -> Iterator[MailFile]:
    """The messages of a folder, without a Maildir's `tmp`, where messages are still being written."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield MailFile(_shown(folder), b"", f"it cannot be read ({error.strerror})")
        return
    names = {entry.name for entry in entries}
    is_maildir = {"cur", "new"} <= names
    files = [entry for entry in entries if _is_file(entry)]
    chosen = [entry for entry in files if entry.name.lower().endswith(MESSAGE_ENDINGS)]
    if not chosen and not is_maildir:
        chosen = [entry for entry in files if not entry.name.startswith(".")]
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not (is_maildir and entry.name == "tmp"):
            yield from _in_folder(Path(entry.path))
        elif entry in chosen:
            yield from _in_file(Path(entry.path), may_be_mbox=folder.name not in ("cur", "new"))


def _is_file(entry: "os.DirEntry[str]") -> bool:
    """Whether it is a file. A symlink loop counts as one, so that it is reported as unreadable."""
    try:
        return entry.is_file()
    except OSError:
        return True


def _shown(path: Path, number: int = 0) -> str:
    """The path as text; not every file name is valid text."""
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return f"{name}#{number}" if number else name


def _in_file(path: Path, *, may_be_mbox: bool) -> Iterator[MailFile]:
    try:
        with path.open("rb") as file:
            if may_be_mbox and path.suffix.lower() != ".eml" and file.peek(len(_MBOX))[: len(_MBOX)] == _MBOX:
                yield from _in_mbox(file, path)
            else:
                yield MailFile(_shown(path), file.read(LARGEST_MESSAGE + 1))
    except OSError as error:
        yield MailFile(_shown(path), b"", f"it cannot be read ({error.strerror})")


def _in_mbox(file: BinaryIO, path: Path) -> Iterator[MailFile]:
    """The messages of an mbox: each begins with a line `From …` after an empty line; `>From` inside means `From`."""
    number, size = 0, 0
    lines: list[bytes] = []
    after_empty, at_start = True, True
    while step := file.readline(LONGEST_STEP):
        if at_start and after_empty and step.startswith(_MBOX):
            if number:
                yield MailFile(_shown(path, number), b"".join(lines))
            number, size, lines = number + 1, 0, []
        elif size <= LARGEST_MESSAGE:
            unescaped = step[1:] if at_start and step.startswith(b">") and step.lstrip(b">").startswith(_MBOX) else step
            lines.append(unescaped)
            size += len(unescaped)
        after_empty = at_start and step in (b"\n", b"\r\n")
        at_start = step.endswith(b"\n")
    yield MailFile(_shown(path, number if number > 1 else 0), b"".join(lines))
