"""Why the data folder cannot be used, and what to do: one sentence for whichever part of Postroom meets it first."""

import errno
import os
import pwd
import shlex
from pathlib import Path

from postroom.core.errors import DatabaseFull, DatabaseReadOnly, StoreError
from postroom.system.private_files import OWN_FOLDERS, holds_data, is_open_to_others

LOST = "lost+found"
OTHERWISE = "or choose another folder with --data-dir"
ROOT = "root"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


def folder_error(folder: Path, error: OSError) -> StoreError:
    """The error of the system as one of ours, about this data folder."""
    if error.errno in _FULL:
        return DatabaseFull(f"the disk that holds {folder} is full; free some space")
    if error.errno in _WITHOUT_LOCKS:
        problem = f"the disk that holds {folder} has no file locks, which Postroom needs"
        return DatabaseReadOnly(f"{problem}; choose a folder on a local disk with --data-dir")
    problem = (
        f"the data folder {folder} cannot be used ({error.strerror}); check that it exists and is yours, {OTHERWISE}"
    )
    return DatabaseReadOnly(why_unusable(folder) or problem)


def why_unusable(folder: Path) -> str | None:
    """Why this user can neither use the folder nor create it; None if nothing is in the way."""
    folder = folder.absolute()
    existing = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    missing = "" if existing == folder else f"the data folder {folder} cannot be created: "
    if not os.path.isdir(existing):
        kind = "a link to nothing" if existing.is_symlink() else "a file"
        return f"{missing}{existing} is {kind}; move it away, {OTHERWISE}"
    if os.access(existing, os.W_OK | os.X_OK):
        return None if missing else _why_not_private(folder)
    if os.statvfs(existing).f_flag & os.ST_RDONLY:
        return f"{missing}the disk that holds {existing} is mounted read-only; mount it to be written, {OTHERWISE}"
    owner = owner_of(existing)
    if owner is None:
        where = f"{missing}you may not write to" if missing else "you may not write to the data folder"
        return f"{where} {existing}; run `chmod u+rwx {shlex.quote(str(existing))}`, {OTHERWISE}"
    if missing:
        return f"{missing}{existing} belongs to {owner}; create it yourself, {OTHERWISE}"
    # A container engine makes missing folders for root, and runs Postroom as another user.
    given = f", or let root give it to you with `chown {os.geteuid()}`" if owner == ROOT else ""
    return f"the data folder {existing} belongs to {owner}; run this command as {owner}{given}, {OTHERWISE}"


def check_private(folder: Path) -> None:
    """Raises DatabaseReadOnly if denying others the folder would take something else from them, as in `/tmp`."""
    if problem := _why_not_private(folder):
        raise DatabaseReadOnly(problem)


def _why_not_private(folder: Path) -> str | None:
    try:
        others_enter = is_open_to_others(folder)
        foreign = [each for each in folder.iterdir() if each.is_dir() and each.name not in (*OWN_FOLDERS, LOST)]
    except OSError:
        return None
    if not others_enter or not foreign or holds_data(folder):
        return None
    return (
        f"{folder} holds other folders and is open to other users, and Postroom's data folder is closed to them; "
        f"name one of its own with --data-dir, such as {folder / 'postroom'}"
    )


def why_database_unusable(file: Path) -> str | None:
    """The same for the database in the folder."""
    if (problem := why_unusable(file.parent)) or not file.exists():
        return problem
    if not file.is_file():
        return f"{file} is not a file; move it away, {OTHERWISE}"
    if os.access(file, os.R_OK | os.W_OK):
        return None
    owner = owner_of(file)
    if owner is None:
        return f"{file} may not be written; run `chmod 600 {shlex.quote(str(file))}`, {OTHERWISE}"
    return f"{file} belongs to {owner}; run this command as {owner}, {OTHERWISE}"


def owner_of(path: Path) -> str | None:
    """The name of the user to whom the file or folder belongs; None if that is this one."""
    user = path.stat().st_uid
    if user == os.geteuid():
        return None
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"
