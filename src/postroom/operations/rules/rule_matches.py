"""The stored mail that one rule would match by itself: a bounded look at the newest. Nothing is changed."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from postroom.core.mail.mail_head import MailHead
from postroom.core.moments import LONG_AGO
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rule import Rule, kinds_used
from postroom.core.rules.rulebook import Rulebook
from postroom.core.views import Shown
from postroom.operations.rules.rules import first_unknown_label, known_labels, with_resolved_scopes
from postroom.store.actions.decisions import DecidingRule, deciding_rules
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.simulation import MessageSelection, PastMessage, label_names
from postroom.triage.decide.engine import unknown_conditions
from postroom.triage.decide.simulate import needed_by, past_pages, with_label_names

NEWEST = 2_000
MOST_AT_ONCE = 2
MOST_RULES = 3
LONGEST_S = 2.0


@dataclass(frozen=True, slots=True)
class MatchedMessage(MailHead):
    """A message that the rule matches."""

    id: UUID
    at: datetime


@dataclass(slots=True)
class RuleMatches:
    """How many of the newest messages the rule matches, since when these came in, and the newest matches.

    `unknown_label` is a label in its conditions that no mailbox has.
    """

    matched: int = 0
    tried: int = 0
    total: Annotated[int, "How many there were to try; more than were tried if the rule is slow."] = 0
    unknown: Annotated[int, "Messages of which too little is stored to tell."] = 0
    since: datetime | None = None
    unknown_label: str | None = None
    already: Annotated[Sequence[DecidingRule], "The rules that decided about those it matches, and how many each."] = ()
    _ids: list[UUID] = field(default_factory=list[UUID])
    _newest: deque[MatchedMessage] = field(default_factory=lambda: deque[MatchedMessage](maxlen=5))

    @property
    def newest(self) -> Shown[list[MatchedMessage]]:
        return list(reversed(self._newest))

    @property
    def ids(self) -> Sequence[UUID]:
        return self._ids

    @property
    def is_cut_short(self) -> bool:
        return self.tried < self.total

    def match(self, past: PastMessage) -> None:
        facts = past.message.facts
        self.matched += 1
        self._ids.append(past.message.id)
        self._newest.append(MatchedMessage(facts.sender, facts.subject, past.message.id, past.at))


class RuleMatcher:
    """Finds matches for those who write rules: at most two looks at a time, each at the newest few thousand messages
    and for a second or two.
    """

    def __init__(self, database: Database, newest: int = NEWEST, longest_s: float = LONGEST_S) -> None:
        self._database = database
        self._newest = newest
        self._longest_s = longest_s
        self._room = asyncio.Semaphore(MOST_AT_ONCE)

    async def find(self, draft: RuleDraft) -> RuleMatches:
        """Find the messages that the rule matches, whether it is on, off or in shadow, and whatever other rules say.

        Raises BadInput or NotFound if the rule is for an account that does not exist.
        """
        async with self._room:
            [resolved] = await with_resolved_scopes(self._database, [draft])
            found = RuleMatches(unknown_label=first_unknown_label(resolved, await known_labels(self._database)))
            await self._try(resolved.as_rule(new_id()), found)
            found.already = await self._database.run(deciding_rules(found.ids, MOST_RULES))
            return found

    async def _try(self, rule: Rule, found: RuleMatches) -> None:
        trial = _Trial(rule, await self._database.run(label_names()), time.monotonic() + self._longest_s)
        wanted = MessageSelection(LONG_AGO, self._newest)
        async for page, total in past_pages(self._database, wanted, needed_by([rule])):
            found.since = found.since or page[0].at
            # In a thread, so that the server still answers meanwhile.
            await asyncio.to_thread(trial.on, page, found)
            found.total = max(total, found.tried)
            if found.is_cut_short and trial.is_late:
                return


class _Trial:
    def __init__(self, rule: Rule, labels: Mapping[UUID, Mapping[str, str]], until: float) -> None:
        self._book = Rulebook([replace(rule, shadow=False)])
        self._kinds = kinds_used(rule.conditions)
        self._labels = labels
        self._until = until

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._until

    def on(self, page: Sequence[PastMessage], found: RuleMatches) -> None:
        for past in page:
            if self.is_late:
                return
            message = with_label_names(past.message, self._labels)
            hidden = unknown_conditions(message)
            matching = self._book.matching(message.account_id, message.facts, past.at, hidden)
            found.tried += 1
            found.unknown += bool(hidden & self._kinds)
            if next(matching, None) is not None:
                found.match(past)
