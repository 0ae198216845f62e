"""A mailbox in memory that behaves like Gmail's: ids, threads, labels with side effects, history, search."""

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any

from postroom_sandbox.filters import Arriving, Filters
from postroom_sandbox.history import REMEMBERED, Change, History, HistoryKind
from postroom_sandbox.labels import Label, Labels, after_change
from postroom_sandbox.message import Message
from postroom_sandbox.mime import Mail
from postroom_sandbox.query import Query, parse_query
from postroom_sandbox.refusal import invalid, missing
from postroom_sandbox.search_terms import Received, Setting

__all__ = ["ARRIVING", "Mailbox", "Message", "utc_now"]

Json = dict[str, Any]

ARRIVING = frozenset({"INBOX", "UNREAD"})

# Gmail only estimates the number of search results, and stops counting here.
ESTIMATE_UP_TO = 201

_ID = re.compile(r"[0-9a-f]{1,16}")
_MESSAGE_ID = re.compile(r"<[^<>\s]+>")
_REPLY_MARKS = re.compile(r"^(\s*(re|fwd?|aw|wg|sv|antw)\s*(\[\d+\])?\s*:)+", re.IGNORECASE)


def utc_now() -> datetime:
    return datetime.now(UTC)


class Mailbox:
    """One person's mailbox. Lists show a message at once, searches only when it is indexed: `search_lag` later.

    `search_gaps` is the share of messages that no search ever finds.
    """

    def __init__(
        self,
        owner: str,
        rng: Random,
        clock: Callable[[], datetime] = utc_now,
        remembered: int = REMEMBERED,
        search_lag: timedelta = timedelta(0),
        search_gaps: float = 0.0,
    ) -> None:
        self.owner = owner
        self.labels = Labels()
        self.history = History(remembered)
        self.history_id = rng.randrange(1_000, 100_000)
        self.clock = clock
        self.rng = rng
        self.search_lag = search_lag
        self.search_gaps = search_gaps
        # Where `me` stands in a search; the send-as addresses belong to it too.
        self.own_addresses: Callable[[], frozenset[str]] = lambda: frozenset({owner.lower()})
        self.filters = Filters(rng, lambda: self.labels, self.search_setting)
        self.forward: Callable[[str, bytes], None] = lambda _address, _raw: None
        self.observers: list[Callable[[Change], None]] = []
        self._messages: dict[str, Message] = {}
        self._order: list[tuple[int, str]] = []
        self._threads: dict[str, list[str]] = {}
        self._by_message_id: dict[str, Message] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    @property
    def threads(self) -> int:
        return len(self._threads)

    def get(self, message_id: str) -> Message:
        if not _ID.fullmatch(message_id):
            raise invalid("Invalid id value")
        if message_id not in self._messages:
            raise missing()
        return self._messages[message_id]

    def thread(self, thread_id: str) -> list[Message]:
        """The messages of a thread, oldest first."""
        if not _ID.fullmatch(thread_id):
            raise invalid("Invalid id value")
        if thread_id not in self._threads:
            raise missing()
        return sorted((self._messages[id] for id in self._threads[thread_id]), key=lambda message: message.place)

    def deliver(
        self,
        raw: bytes,
        labels: Collection[str] = ARRIVING,
        received_at: datetime | None = None,
        thread_id: str | None = None,
        staying: bool = False,
    ) -> Message:
        """Add a mail to the mailbox, as received now or at `received_at`.

        It joins `thread_id` if it replies to a message there, or if `staying`; else the thread of what it replies to.
        """
        wanted = frozenset(labels)
        self.labels.check_known(wanted)
        mail = Mail(raw)
        received_at = received_at or self.clock()
        message_id = self._new_id(received_at)
        thread = (thread_id if staying else self._thread_of(mail, thread_id)) or message_id
        message = Message(message_id, thread, mail, received_at, wanted, 0)
        self.put_back(message)
        self._record("messageAdded", message)
        return message

    def receive(self, raw: bytes, labels: Collection[str] = ARRIVING) -> Message:
        """Add new mail from outside. The filters apply before anybody sees it, so it is added once, with all labels."""
        wanted, now = frozenset(labels), self.clock()
        self.labels.check_known(wanted)
        filtered, forwards = self.filters.applied(Arriving(Mail(raw), wanted, now))
        message = self.deliver(raw, filtered, now)
        if not _was_forwarded_by(self.owner, message.mail):
            for address in forwards:
                self.forward(address, forwarded(raw, self.owner, address))
        return message

    def put_back(self, message: Message) -> None:
        """Add a message as it is, under its own ids; nothing is recorded."""
        self._messages[message.id] = message
        self._threads.setdefault(message.thread_id, []).append(message.id)
        insort(self._order, message.place)
        for key in _MESSAGE_ID.findall(message.mail.header("Message-ID")):
            self._by_message_id.setdefault(key, message)

    def modify(self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Message:
        message = self.get(message_id)
        adding, removing = frozenset(add), frozenset(remove)
        self.labels.check_change(adding, removing)
        before = message.labels
        message.labels = after_change(before, adding, removing)
        if gained := message.labels - before:
            self._record("labelAdded", message, gained)
        if lost := before - message.labels:
            self._record("labelRemoved", message, lost)
        return message

    def delete(self, message_id: str) -> None:
        message = self.get(message_id)
        del self._messages[message_id]
        del self._order[bisect_left(self._order, message.place)]
        self._threads[message.thread_id].remove(message_id)
        if not self._threads[message.thread_id]:
            del self._threads[message.thread_id]
        for key in _MESSAGE_ID.findall(message.mail.header("Message-ID")):
            if self._by_message_id.get(key) is message:
                del self._by_message_id[key]
        self._record("messageDeleted", message)

    def delete_label(self, label_id: str) -> None:
        """Delete a label, and remove it from every message."""
        self.labels.delete(label_id)
        self.filters.drop_label(label_id)
        for message in self._messages.values():
            if label_id in message.labels:
                message.labels -= {label_id}
                self._record("labelRemoved", message, frozenset({label_id}))

    def clear(self) -> None:
        """Delete everything. History ids keep rising, so that clients learn that older ones have expired."""
        self.history_id += 1
        self.history.forget(self.history_id)
        self.labels = Labels()
        self.filters.clear()
        self._messages.clear()
        self._order.clear()
        self._threads.clear()
        self._by_message_id.clear()

    def expire_history(self, up_to: int | None = None) -> None:
        """Expire the history up to an id, or all of it: requests from an older id get a 404."""
        self.history.forget(self.history_id if up_to is None else up_to)

    def search(
        self,
        q: str = "",
        label_ids: Collection[str] = (),
        include_spam_trash: bool = False,
        before: tuple[int, str] | None = None,
    ) -> Iterator[Message]:
        """The matching messages, newest first, from `before` on. That is a position in the order, not an offset, so
        that new mail that arrives between two pages does not shift them."""
        wanted = frozenset(label_ids)
        self.labels.check_known(wanted)
        query = parse_query(q, self.search_setting()) if q else Query()
        everywhere = include_spam_trash or query.everywhere or bool(wanted & {"SPAM", "TRASH"})
        is_indexed = self._index() if q else None
        first, end = self._places(query.received)
        if before is not None:
            end = min(end, bisect_left(self._order, before))
        for position in range(end - 1, first - 1, -1):
            message = self._messages[self._order[position][1]]
            if not wanted <= message.labels or (not everywhere and message.labels & {"SPAM", "TRASH"}):
                continue
            if is_indexed is not None and not is_indexed(message):
                continue
            if query.matches(message):
                yield message

    def page(
        self,
        size: int,
        q: str = "",
        label_ids: Collection[str] = (),
        include_spam_trash: bool = False,
        before: tuple[int, str] | None = None,
    ) -> tuple[list[Message], tuple[int, str] | None, int]:
        """One page of a search, the position of the next page, and the estimated number of results."""
        counted = list(islice(self.search(q, label_ids, include_spam_trash, before), max(ESTIMATE_UP_TO, size + 1)))
        shown = counted[:size]
        following = shown[-1].place if len(counted) > size else None
        return shown, following, min(len(counted), ESTIMATE_UP_TO)

    def changes_since(
        self, start: int, kinds: frozenset[str] = frozenset(), label_id: str | None = None
    ) -> Iterator[Change]:
        if start > self.history_id:
            raise missing()
        return self.history.since(start, kinds, label_id)

    def search_setting(self) -> Setting:
        return Setting(self._label_named, self.own_addresses(), self.clock())

    def count(self, label: Label) -> Json:
        """A label with its counts, as labels.get shows it."""
        labelled = [message for message in self._messages.values() if label.id in message.labels]
        unread = [message for message in labelled if "UNREAD" in message.labels]
        return {
            **label.as_json(),
            "messagesTotal": len(labelled),
            "messagesUnread": len(unread),
            "threadsTotal": len({message.thread_id for message in labelled}),
            "threadsUnread": len({message.thread_id for message in unread}),
        }

    def _places(self, received: Received) -> tuple[int, int]:
        """The part of the order in which messages received at these times are, so that a search for a month is as
        fast in an archive of ten years.
        """
        first, end = (int(moment.timestamp() * 1000) for moment in received)
        return bisect_left(self._order, (first, "")), bisect_left(self._order, (end + 1, ""))

    def _index(self) -> Callable[[Message], bool]:
        """A test for whether searches find a message by now. The ids decide which messages are never found."""
        lag, now, gaps = self.search_lag, self.clock(), int(self.search_gaps * 1000)

        def is_indexed(message: Message) -> bool:
            return (not lag or message.received_at <= now - lag) and int(message.id[-5:], 16) % 1000 >= gaps

        return is_indexed

    def _record(self, kind: HistoryKind, message: Message, changed: frozenset[str] = frozenset()) -> None:
        # Gmail's ids have gaps, so that a client that takes them for consecutive fails here.
        self.history_id += self.rng.randrange(1, 40)
        message.history_id = self.history_id
        change = Change(self.history_id, kind, message.id, message.thread_id, message.labels, changed)
        self.history.record(change)
        for observe in self.observers:
            observe(change)

    def _new_id(self, received_at: datetime) -> str:
        """Sixteen hexadecimal digits that begin with the time, like Gmail's.

        Within one millisecond they rise, so that mail is listed in the order in which it came.
        """
        milliseconds = int(received_at.timestamp() * 1000)
        lowest, random_bits = max(milliseconds, 0) << 20, 20
        behind = bisect_left(self._order, (milliseconds + 1, ""))
        if behind and self._order[behind - 1][0] == milliseconds:
            lowest, random_bits = int(self._order[behind - 1][1], 16) + 1, 8
        while True:
            message_id = f"{(lowest + self.rng.getrandbits(random_bits)) & (2**64 - 1):016x}"
            if message_id not in self._messages and message_id not in self._threads:
                return message_id

    def _thread_of(self, mail: Mail, wanted: str | None) -> str | None:
        """The thread of the message that this one replies to. Gmail starts a new one if the subject differs."""
        if wanted is not None:
            self.thread(wanted)
        joined: str | None = None
        for key in _MESSAGE_ID.findall(f"{mail.header('In-Reply-To')} {mail.header('References')}"):
            answered = self._by_message_id.get(key)
            if answered and _topic(answered.mail) == _topic(mail):
                if wanted in (None, answered.thread_id):
                    return answered.thread_id
                joined = joined or answered.thread_id
        return joined

    def _label_named(self, name: str) -> str | None:
        label = self.labels.named(name)
        return label.id if label else None


def forwarded(raw: bytes, owner: str, address: str) -> bytes:
    """The copy of a mail that a filter forwards, marked as Gmail marks it, so that two mailboxes do not forward to
    each other for ever.
    """
    return f"X-Forwarded-To: {address}\r\nX-Forwarded-For: {owner} {address}\r\n".encode() + raw


def _was_forwarded_by(owner: str, mail: Mail) -> bool:
    return any(value.lower().split()[:1] == [owner.lower()] for value in mail.all_headers("x-forwarded-for"))


def _topic(mail: Mail) -> str:
    return _REPLY_MARKS.sub("", mail.header("Subject")).strip().casefold()
