"""The hosts that receive mail for a mailbox, by the names that they give themselves in `Authentication-Results`.

They are known for a provider, given by the owner, or learned from mail that the user sent to themselves: it carries the
id of a message in the sent folder, and only the receiving host can have added the topmost results. It may arrive before
its copy is in the sent folder, so it is kept in mind for a while. A wrong name does no harm, since results are only
believed if they say that a sender is not authentic, and the true ones stand above it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import orjson

from postroom.core.mail.headers import Headers, values
from postroom.core.mail.sender_doubt import is_own_host, top_host, undoubted_sender
from postroom.core.mail.tiers import Known, addressed_to_user, message_ids
from postroom.sources.state_file import read_object, replace_file

FILE = "receiving_hosts.json"
# A mailbox has few receiving hosts. More are not learned, but may be given.
MOST_LEARNED = 8
LONGEST_NAME = 255
MOST_WAITING = 20


class ReceivingHosts:
    """The hosts of one mailbox; those that were learned are stored in its folder, if it has one."""

    def __init__(self, given: Iterable[str] = (), folder: Path | None = None) -> None:
        self._given = frozenset(each.lower() for each in given if each)
        self._path = None if folder is None else folder / FILE
        self._learned = _learned_in(self._path)
        self._waiting: dict[str, str] = {}
        """The hosts of mail that the user seems to have sent, by its id."""

    @property
    def names(self) -> frozenset[str]:
        return self._given | self._learned

    def learn(self, incoming: Iterable[Headers], known: Known) -> None:
        """Learn from messages that arrived, and from earlier ones that have turned out to be the user's."""
        if self._given or len(self._learned) >= MOST_LEARNED:
            return
        for headers in incoming:
            host = top_host(headers)
            if not self._is_new(host) or not _is_sent_to_self(headers, known):
                continue
            ids = [id for value in values(headers, "message-id") for id in message_ids(value)]
            self._waiting.update(dict.fromkeys(ids[:1], host))
            while len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
        for id in [id for id in self._waiting if id in known.sent_ids]:
            self._keep(self._waiting.pop(id))

    def _is_new(self, host: str) -> bool:
        return 0 < len(host) <= LONGEST_NAME and host.isprintable() and not is_own_host(host, self._learned)

    def _keep(self, host: str) -> None:
        if host in self._learned or len(self._learned) >= MOST_LEARNED:
            return
        self._learned = self._learned | {host}
        if self._path is not None:
            replace_file(self._path, orjson.dumps({"hosts": sorted(self._learned)}))


def _is_sent_to_self(headers: Headers, known: Known) -> bool:
    """Whether it says so. Whether it is true, the sent folder tells."""
    sender = undoubted_sender(headers, known.own_hosts)
    return sender in known.user_addresses and addressed_to_user(headers, known)


def _learned_in(path: Path | None) -> frozenset[str]:
    listed = None if path is None else read_object(path).get("hosts")
    if not isinstance(listed, list):
        return frozenset()
    return frozenset(each for each in cast("list[object]", listed)[:MOST_LEARNED] if isinstance(each, str))
