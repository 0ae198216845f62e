"""Finds mail that is past its time, and prunes it batch by batch. Mail in the mailbox itself is never touched.

Each batch is one transaction, and what it pruned is not found again: a run that is interrupted continues where it was.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from postroom.core.mail.categories import categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.retention import RetentionPolicy
from postroom.core.mail.tiers import Known
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail import contacts, retention
from postroom.store.mail.retention import ExpiredMessage, KeptMessage, PruneCounts, RetentionRun, count_messages
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock

BATCH = 200
MOST_SAMPLES = 10
MERGED_PAGES = 500
CONTACTS_AT_ONCE = 5_000
START = Cursor(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(slots=True)
class RetentionPreview:
    """A dry run: counts, when the oldest and the newest were stored, and a few of the messages."""

    counts: PruneCounts = field(default_factory=PruneCounts)
    oldest: datetime | None = None
    newest: datetime | None = None
    samples: list[KeptMessage] = field(default_factory=list[KeptMessage])

    def add(self, found: Sequence[tuple[KeptMessage, ExpiredMessage]], held: int) -> None:
        self.counts = self.counts.plus(count_messages([past for _, past in found], held))
        if found:
            self.oldest = self.oldest or found[0][0].stored_at
            self.newest = found[-1][0].stored_at
            self.samples += [message for message, _ in found[: MOST_SAMPLES - len(self.samples)]]


@dataclass(eq=False, slots=True)
class Retention:
    """Applies one policy to stored mail."""

    database: Database
    policy: RetentionPolicy
    clock: Clock = wall_clock
    batch: int = BATCH
    _known: dict[str, Known] = field(default_factory=dict[str, Known], init=False)

    async def preview(self, ran_by: str) -> RetentionPreview:
        """Find what would be pruned now, change nothing, and record the dry run with its counts."""
        started, preview = self.clock(), RetentionPreview()
        async with aclosing(self._past()) as batches:
            async for found in batches:
                held = await self.database.run(retention.held_messages([past.id for _, past in found], self.clock()))
                preview.add([each for each in found if each[1].id not in held], len(held))
        await self._record(preview.counts, ran_by, started, is_dry=True)
        return preview

    async def prune(
        self, signed: Signature, *, approved_only: bool = False, between: Callable[[], None] = lambda: None
    ) -> PruneCounts:
        """Prune all that is past its time. `between` is called between two batches, and may raise to end the run.

        With `approved_only`, raises Refused when these settings are not, or no longer, the approved ones.
        """
        started, counts = self.clock(), PruneCounts()
        approved = self.policy.as_json() if approved_only else None
        async with aclosing(self._past()) as batches:
            async for found in batches:
                entry, past = signed._replace(entry_id=new_id()), [past for _, past in found]
                pruned = await self.database.run(retention.prune_messages(past, entry, self.clock(), approved))
                counts = counts.plus(pruned)
                between()
        if counts.messages:
            await self._forget_words(between)
        await self._record(counts, signed.actor, started, is_dry=False)
        return counts

    async def _forget_words(self, between: Callable[[], None]) -> None:
        """Remove the words of pruned mail from the search index, in small steps."""
        pages = -MERGED_PAGES
        while await self.database.run(retention.merge_words(pages)):
            pages = MERGED_PAGES
            between()

    async def _past(self) -> AsyncGenerator[list[tuple[KeptMessage, ExpiredMessage]]]:
        """The messages that are past their time, oldest first, in batches."""
        shortest, now = self.policy.shortest, self.clock()
        if shortest is None:
            return
        try:
            before = now - shortest
        except OverflowError:
            return
        position = START
        while page := await self.database.run(retention.kept_messages(before, position, self.batch)):
            found = [(each, past) for each in page if (past := await self._judge(each, now)) is not None]
            if found:
                yield found
            position = Cursor(page[-1].stored_at, page[-1].id)

    async def _judge(self, message: KeptMessage, now: datetime) -> ExpiredMessage | None:
        categories = message.stored_categories
        if not categories:
            known = self._known.get(message.endpoint_identity) or await self._load_known(message)
            facts = IngestionFacts(message.sender, message.headers, text=message.text_start)
            categories = tuple(categories_of(facts, known))
        if not self.policy.is_past(message.ingestion_tier, categories, message.stored_at, now):
            return None
        return ExpiredMessage(message.id, message.ingestion_tier, categories)

    async def _load_known(self, message: KeptMessage) -> Known:
        """The people that an account knows, which a category may depend on."""
        found: list[str] = []
        while page := await self.database.run(
            contacts.export_contacts(message.endpoint_identity, found[-1] if found else "", CONTACTS_AT_ONCE)
        ):
            found += page
        known = Known(frozenset({message.account_email.lower()}), frozenset(found))
        self._known[message.endpoint_identity] = known
        return known

    async def _record(self, counts: PruneCounts, ran_by: str, started: datetime, *, is_dry: bool) -> None:
        policy, ended = self.policy.as_json(), self.clock()
        run = RetentionRun(
            new_id(), is_dry, policy, counts.messages, counts.held, counts.as_json(), ran_by, started, ended
        )
        await self.database.run(retention.record_run(run))
