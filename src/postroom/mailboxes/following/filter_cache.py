"""A connector's cache of the ingestion rules: a copy of the switchboard's rules in the connector's own folder.

Rules do not expire: those fetched last are used until the next fetch. Before the first fetch, the shipped pack is used.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy, as_data, parse_rule
from postroom.sources.refreshing import EVERY, keep_fresh
from postroom.sources.state_file import read_object, replace_file
from postroom.sources.switchboard_client import FilterSource


class FilterCache:
    """The rules of one connector."""

    def __init__(self, path: Path, source: FilterSource) -> None:
        self._path = path
        self._source = source
        self.version: str | None = None
        self._policy = DEFAULT_POLICY
        self._load()

    def policy(self) -> IngestionPolicy:
        return self._policy

    async def refresh(self) -> None:
        """Fetch the rules; write the file only if they changed."""
        filters = await self._source.filters()
        if filters.version == self.version:
            return
        content = {
            "generated_at": filters.generated_at.isoformat(),
            "version": filters.version,
            "rules": [as_data(rule) for rule in filters.rules],
        }
        await asyncio.to_thread(replace_file, self._path, orjson.dumps(content))
        self._policy, self.version = IngestionPolicy(filters.rules), filters.version

    async def run(self, stop: asyncio.Event, every: timedelta = EVERY) -> None:
        """Refresh the rules until `stop`."""
        await keep_fresh("filters", self.refresh, stop, every=every)

    def _load(self) -> None:
        """Load what was fetched before. A malformed file counts as missing."""
        content = read_object(self._path)
        version, rules = content.get("version"), content.get("rules")
        if not isinstance(version, str) or not isinstance(rules, list):
            return
        try:
            self._policy = IngestionPolicy([parse_rule(dict(each)) for each in cast("list[Any]", rules)])
        except (BadInput, TypeError, ValueError):
            return
        self.version = version
