"""Which messages of a span a backfill ingests: those in its categories, in its window, and incoming; each with its
envelope.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from postroom.core.backfill.window import Window
from postroom.core.mail.categories import Category, categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.mailboxes.backfill.archive import SLACK
from postroom.mailboxes.backfill.reporting import End
from postroom.mailboxes.following.envelopes import PreparedMessage, prepare
from postroom.mailboxes.following.fetch import FetchResult
from postroom.mailboxes.following.ingester import is_incoming
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.refused import reason_of


@dataclass(slots=True)
class Batch:
    """Messages in the order of the walk: those to ingest, with their categories, and the outcomes of the others."""

    ids: Sequence[str]
    ready: list[PreparedMessage] = field(default_factory=list[PreparedMessage])
    categories: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ends: dict[str, End] = field(default_factory=dict[str, End])


class Selection:
    """The choice of one backfill job."""

    def __init__(
        self,
        job_id: UUID,
        categories: Sequence[Category],
        window: Window,
        *,
        endpoint_identity: str,
        knowledge: Knowledge,
        clock: Callable[[], datetime],
    ) -> None:
        self._job_id = job_id
        self._names = frozenset(each.name for each in categories)
        self._window = window
        self._endpoint_identity = endpoint_identity
        self._knowledge = knowledge
        self._clock = clock

    def of(self, ids: Sequence[str], fetched: FetchResult, span: Window) -> Batch:
        """Select from the messages of a span that were read."""
        batch = Batch(ids)
        batch.ends |= {id: End("failed", reason_of(error)) for id, error in fetched.unreadable.items()}
        batch.ends |= dict.fromkeys(fetched.gone, End("skipped"))
        known, policy, now = self._knowledge.known(), self._knowledge.policy(), self._clock()
        for message in fetched.read:
            if not self._is_of(span, message.internal_date):
                batch.ends[message.id] = End("outside")
                continue
            parsed = message.parsed()
            facts = IngestionFacts.of(parsed)
            names = [name for name in categories_of(facts, known) if name in self._names]
            if not names or not is_incoming(message, known):
                batch.ends[message.id] = End("skipped")
                continue
            if message.id in fetched.problems:
                parsed = replace(parsed, problems=(fetched.problems[message.id], *parsed.problems))
            batch.categories[message.id] = names
            batch.ready.append(
                prepare(message, self._endpoint_identity, known, now, policy, parsed, backfill_job_id=self._job_id)
            )
        return batch

    def _is_of(self, span: Window, date: datetime) -> bool:
        """Whether the message belongs to this span. One within the slack of a limit is listed in the span beside it."""
        is_beside = span.start - SLACK <= date < span.start or span.end <= date < span.end + SLACK
        return self._window.contains(date) and not is_beside
