"""The lease of a connector's last backfill, kept in a file: a connector that was killed takes its job back at once.

Only the lease: the cursor is the switchboard's. The folder is locked for one process, so whoever reads the file knows
that the process which wrote it has ended.
"""

from pathlib import Path

import orjson

from postroom.sources.state_file import read_object, replace_file


class KeptLease:
    """Without a path it is kept in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        stored = {} if path is None else read_object(path)
        self.token = token if isinstance(token := stored.get("lease_token"), str) else None

    def keep(self, token: str | None) -> None:
        self.token = token
        if self._path is not None:
            replace_file(self._path, orjson.dumps({"lease_token": token}))
