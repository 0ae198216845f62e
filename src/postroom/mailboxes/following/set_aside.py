"""Messages that Gmail does not return although it returns others: set aside, so that they block no others, and retried.

One small file, replaced as a whole, stores in how many rounds a message has failed, and which messages are set aside,
why, since when, and when they are retried. It has no content of a message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from postroom.mailboxes.following.refused import reason_of
from postroom.sources.state_file import read_object, replace_file

FILE = "set_aside.json"
ROUNDS = 4
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(days=1)
# More than this is not about single messages: then the mailbox waits until Gmail works again.
MOST = 1_000


@dataclass(frozen=True, slots=True)
class SetAsideMessage:
    """A message that is set aside. `tries` counts the attempts since then."""

    id: str
    reason: str
    since: datetime
    tries: int
    again_at: datetime


class SetAside:
    """The list of one connector; without a folder only in memory."""

    def __init__(self, folder: Path | None, clock: Callable[[], datetime]) -> None:
        self._path = None if folder is None else folder / FILE
        self._clock = clock
        self._messages = {} if folder is None else {each.id: each for each in set_aside_in(folder)}
        self._failing = {} if self._path is None else _failing_in(read_object(self._path))

    def __contains__(self, id: str) -> bool:
        return id in self._messages

    @property
    def count(self) -> int:
        return len(self._messages)

    def fail(self, failed: Mapping[str, Exception]) -> None:
        """Record that these failed in one more round while Gmail returned others. After too many rounds they are set
        aside.
        """
        now = self._clock()
        for id, error in failed.items():
            rounds = self._failing.pop(id, 0) + 1
            if rounds < ROUNDS or len(self._messages) >= MOST:
                self._failing[id] = rounds
            else:
                self._messages[id] = SetAsideMessage(id, reason_of(error), now, 0, now + FIRST_PAUSE)
        while len(self._failing) > MOST:
            del self._failing[next(iter(self._failing))]
        self._write()

    def put_off(self, id: str, error: Exception) -> None:
        """Record that a retry failed: the next one comes after twice the time."""
        before = self._messages.get(id)
        if before is None:  # Somebody requested it meanwhile, beside this round, and it has an outcome.
            return
        tries = before.tries + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries, 20))
        self._messages[id] = SetAsideMessage(id, reason_of(error), before.since, tries, self._clock() + pause)
        self._write()

    def due(self, most: int) -> list[str]:
        """Those whose pause is over, the longest due first."""
        now = self._clock()
        due = sorted((each for each in self._messages.values() if each.again_at <= now), key=lambda each: each.again_at)
        return [each.id for each in due[:most]]

    def forget(self, ids: Iterable[str]) -> None:
        """Remove messages that have an outcome."""
        known = [id for id in ids if id in self._messages or id in self._failing]
        for id in known:
            self._messages.pop(id, None)
            self._failing.pop(id, None)
        if known:
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        messages = [asdict(each) for each in self._messages.values()]
        replace_file(self._path, orjson.dumps({"failing": self._failing, "set_aside": messages}))


def set_aside_in(folder: Path) -> list[SetAsideMessage]:
    """The messages set aside in a connector's folder, oldest first. Malformed entries are left out."""
    listed = read_object(folder / FILE).get("set_aside")
    if not isinstance(listed, list):
        return []
    found = (_message(each) for each in cast("list[Any]", listed))
    return sorted((each for each in found if each is not None), key=lambda each: each.since)


def _message(fields: Any) -> SetAsideMessage | None:
    try:
        id, reason = str(fields["id"]), str(fields["reason"])
        return SetAsideMessage(id, reason, _moment(fields["since"]), int(fields["tries"]), _moment(fields["again_at"]))
    except (KeyError, TypeError, ValueError):
        return None


def _moment(text: object) -> datetime:
    moment = datetime.fromisoformat(str(text))
    if moment.tzinfo is None:
        raise ValueError("without a time zone it cannot be compared")
    return moment


def _failing_in(content: Mapping[str, Any]) -> dict[str, int]:
    failing = content.get("failing")
    if not isinstance(failing, dict):
        return {}
    return {id: n for id, n in cast("dict[str, Any]", failing).items() if type(n) is int and n > 0}
