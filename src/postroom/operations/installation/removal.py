"""The parts of Postroom on this machine, and how the data folder is deleted: only what Postroom keeps, by name."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from postroom.operations.installation.service import ServiceManager, installed
from postroom.system.private_files import files_kept
from postroom.system.restore_lock import FILE as RESTORE_LOCK
from postroom.system.restore_lock import exclusive_folder


def services(environ: Mapping[str, str] = os.environ) -> dict[str, list[Path]]:
    """The files that `postroom service install` has written, by the command that removes them."""
    kinds = {"service uninstall": False, "service uninstall --user": True}
    found = {command: installed(ServiceManager(for_user, None, environ)) for command, for_user in kinds.items()}
    return {command: files for command, files in found.items() if files}


def delete_data(data_dir: Path) -> list[Path]:
    """Delete what Postroom keeps in its data folder, and the folder if nothing else is in it; return what is left.

    Nothing is followed out of the folder: a symbolic link is removed, and what it names stays. Raises DatabaseInUse if
    a process uses the folder; none can begin to meanwhile.
    """
    with exclusive_folder(data_dir):
        for path in files_kept(data_dir):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != RESTORE_LOCK:
                path.unlink(missing_ok=True)
        (data_dir / RESTORE_LOCK).unlink()
    left = sorted(data_dir.iterdir())
    if not left and not data_dir.is_symlink():
        data_dir.rmdir()
    return left
