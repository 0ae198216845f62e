"""The output of `backup` and `restore`: their progress, and which keys are needed."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.backup.archive import Manifest, Progress

EVERY_S = 1.0


@contextmanager
def shown_progress(as_json: bool) -> "Generator[Progress]":
    """Print progress on stderr, at most once a second, and only for work that takes longer than that."""
    from postroom.backup.archive import silent

    if as_json:
        yield silent
        return
    said_at, said = time.monotonic(), False
    is_terminal = sys.stderr.isatty()

    def progress(what: str, done: int, total: int) -> None:
        nonlocal said_at, said
        if time.monotonic() - said_at >= EVERY_S:
            said_at, said = time.monotonic(), True
            text = f"{what}: {100 * done // max(total, 1)} %"
            typer.echo(f"\r\033[K{text}" if is_terminal else text, err=True, nl=not is_terminal)

    yield progress
    if said and is_terminal:
        typer.echo("\r\033[K", err=True, nl=False)


def manifest_row(file: "Path", manifest: "Manifest", **more: object) -> dict[str, object]:
    """A backup for programs."""
    return {
        "file": str(file),
        **more,
        "created_at": manifest.created_at,
        "database": manifest.dialect,
        "rows": sum(manifest.rows.values()),
        "keys_needed": manifest.keys_needed,
        "keys_included": manifest.keys_included,
    }


def keys_line(manifest: "Manifest", data_dir: "Path") -> str:
    """Say which keys must be kept separately from the backup."""
    if not manifest.keys_needed:
        return "no account's secrets are stored, so no key is needed"
    names = ", ".join(manifest.keys_needed)
    if manifest.keys_included:
        return f"the keys are included ({names}): anyone who has the file can decrypt the accounts' secrets"
    return (
        f"not included: the keys {names}, from {data_dir / 'keys.json'} or POSTROOM_SECRET_KEY; keep them separately: "
        "without them every account has to be connected again"
    )
