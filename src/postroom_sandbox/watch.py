"""`users.watch`: a mailbox notifies a topic of changes, for a week."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.pubsub import Pubsub
from postroom_sandbox.refusal import invalid

LIFE = timedelta(days=7)


@dataclass(frozen=True)
class Watch:
    topic: str
    label_ids: frozenset[str]
    excluding: bool
    expires_at: datetime

    def concerns(self, change: Change) -> bool:
        if not self.label_ids:
            return True
        return self.excluding != bool(self.label_ids & (change.labels | change.changed))


class Watcher:
    """The watch of one mailbox, if it has one."""

    def __init__(self, mailbox: Mailbox, pubsub: Pubsub) -> None:
        self.watch: Watch | None = None
        self._mailbox = mailbox
        self._pubsub = pubsub
        mailbox.observers.append(self._on_change)

    def begin(self, topic: str, label_ids: frozenset[str], excluding: bool) -> dict[str, Any]:
        """Start or renew the watch. Google sends a first notification at once."""
        self._mailbox.labels.check_known(label_ids)
        now = self._mailbox.clock()
        if self.watch and self.watch.topic != topic and now < self.watch.expires_at:
            raise invalid("Only one user push notification client allowed per developer (call /stop then try again)")
        self._pubsub.create_topic(topic)
        self.watch = Watch(topic, label_ids, excluding, now + LIFE)
        self._notify(self.watch)
        expiration = int(self.watch.expires_at.timestamp() * 1000)
        return {"historyId": str(self._mailbox.history_id), "expiration": str(expiration)}

    def stop(self) -> None:
        self.watch = None

    def _on_change(self, change: Change) -> None:
        watch = self.watch
        if watch and watch.concerns(change) and self._mailbox.clock() < watch.expires_at:
            self._notify(watch)

    def _notify(self, watch: Watch) -> None:
        content = {"emailAddress": self._mailbox.owner, "historyId": self._mailbox.history_id}
        self._pubsub.publish(watch.topic, content)
