"""Messages in files: an mbox, a Maildir, a folder of messages, or one message; read one at a time, never all at once.

A `.eml` file, and each file of a Maildir, is one message; any other file that begins with `From ` is an mbox. In a
folder with `.eml` or `.mbox` files only those are read; in any other, every file. Nothing is changed, locked or
created.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.mime import LARGEST_MESSAGE

MESSAGE_ENDINGS = (".eml", ".mbox", ".mbx")
STEP = 1_048_576
_MBOX = b"From "
# More than the largest message, also after one of seven bytes was the sign before `From `.
_KEPT = LARGEST_MESSAGE * 7 // 6 + STEP
_BETWEEN = re.compile(rb"\n\r?\n(?=From )")
_LONGEST_BETWEEN = len(b"\n\r\nFrom ")
_ESCAPED = re.compile(rb"^>(?=>*From )", re.MULTILINE)


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
        yield MailFile(_path_text(folder), b"", f"it cannot be read ({error.strerror})")
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


def _path_text(path: Path, number: int = 0) -> str:
    """The path as text; not every file name is valid text."""
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return f"{name}#{number}" if number else name


def _in_file(path: Path, *, may_be_mbox: bool) -> Iterator[MailFile]:
    try:
        with path.open("rb") as file:
            if may_be_mbox and path.suffix.lower() != ".eml" and file.peek(len(_MBOX))[: len(_MBOX)] == _MBOX:
                yield from _in_mbox(file, path)
            else:
                yield MailFile(_path_text(path), file.read(LARGEST_MESSAGE + 1))
    except OSError as error:
        yield MailFile(_path_text(path), b"", f"it cannot be read ({error.strerror})")


def _in_mbox(file: BinaryIO, path: Path) -> Iterator[MailFile]:
    """The messages of an mbox: each begins with a line `From …` after an empty line; `>From` inside means `From`."""
    number, searched, block = 0, 0, bytearray()
    while step := file.read(STEP):
        block += step
        begun, ends = 0, [between.end() for between in _BETWEEN.finditer(block, searched)]
        for end in ends:
            number += 1
            yield MailFile(_path_text(path, number), _from_mbox(bytes(block[begun:end])))
            begun = end
        del block[:begun]
        # Of a message that is too large, the middle is dropped. Its end may be the beginning of a match.
        del block[_KEPT:-_LONGEST_BETWEEN]
        searched = max(len(block) - _LONGEST_BETWEEN, 0)
    yield MailFile(_path_text(path, number + 1 if number else 0), _from_mbox(bytes(block)))


def _from_mbox(raw: bytes) -> bytes:
    """A message without the line that begins it in an mbox, and as it was before lines in it were escaped."""
    raw = raw.partition(b"\n")[2]
    return (_ESCAPED.sub(b"", raw) if b">From " in raw else raw)[: LARGEST_MESSAGE + 1]
