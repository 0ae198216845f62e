"""The output of `backup` and `restore`: which keys are needed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.backup.archive import Manifest


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
