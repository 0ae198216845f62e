"""A first look at a mailbox: what starter rules and one's own would do with its newest mail, which is only read.

The rules that match are found once for each message. What any choice of starters would do, and since when, follows from
that, so that a person can choose without a second look. The messages of a look are kept in memory alone.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import IngestionPolicy, excerpt
from postroom.core.mail.mail_head import MailHead
from postroom.core.rules.rule import Rule
from postroom.core.rules.rulebook import Matches, Rulebook
from postroom.core.rules.starter import Starter, starters
from postroom.operations.preview.arrivals import IncomingMessage, Recipient, arrive, read_history
from postroom.operations.preview.preview import not_decided
from postroom.operations.preview.preview_account import FetchedMail, OpenSource, Progress, fetch_mail
from postroom.operations.preview.preview_mail import recipient_of
from postroom.operations.preview.preview_rules import own_filters, rules_of
from postroom.operations.rules.starter_rules import LATELY, RuleEffect, StarterView, view_of
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.actions.protection import restraints
from postroom.store.engine.database import Database
from postroom.store.mail.mail import StoredMessage
from postroom.store.rules.rules import RuleView, list_rules
from postroom.triage.decide.engine import unknown_conditions
from postroom.triage.decide.simulate import ForeseenDecision, SimulatedRules, SimulationContext
from postroom.words.actions import asked

MOST = 300
EXAMPLES = 3
MOST_CHOICES = 50

Names = Collection[str]


@dataclass(frozen=True, slots=True)
class LookExample(MailHead):
    """A message that a rule would have decided, and what it would have done, in words."""

    at: datetime
    would: str


@dataclass(slots=True)
class StarterLook(StarterView):
    """A starter, and what it would do with the newest mail beside the person's own rules. Examples are the newest."""

    examples: Sequence[LookExample] = ()


@dataclass(slots=True)
class OwnLook(RuleEffect):
    """The effect of the person's own rules on the newest mail, and the number of these rules."""

    rules: int
    examples: Sequence[LookExample] = ()


class _Seen(NamedTuple):
    """A message of the look, and every rule that matches it, in order."""

    message: StoredMessage
    at: datetime
    is_in_inbox: bool
    matching: tuple[Rule, ...]


class _Foreseen(NamedTuple):
    seen: _Seen
    rules: tuple[str, ...]
    decision: ForeseenDecision


@dataclass(frozen=True, slots=True)
class FirstLook:
    """The newest mail of a mailbox, and what rules would do with it.

    `own` are the person's rules that are on, `off` those that are not, such as imported ones. `reaches` is the time
    since when all mail was looked at; None if that is all there is. With a model, mail that no rule decides is its own
    to decide.
    """

    email: str
    messages: int
    oldest: datetime | None
    newest: datetime | None
    reaches: datetime | None
    has_model: bool
    own: OwnLook | None
    off: OwnLook | None
    starters: Sequence[StarterLook]
    now: datetime
    _seen: Sequence[_Seen] = field(repr=False)
    _rules: "_LookRules" = field(repr=False)
    _foreseen: "dict[frozenset[UUID], list[_Foreseen]]" = field(
        default_factory=dict[frozenset[UUID], "list[_Foreseen]"], repr=False
    )

    def effect(self, chosen: Names) -> RuleEffect:
        """What the rules in use and the chosen starters would have done with this mail when it came."""
        return _count(self._seen, self._foresee(chosen), as_it_came=True)

    def effect_of(self, names: Names, chosen: Names) -> RuleEffect:
        """The part of that effect which rules with these names have."""
        return _count(self._seen, self._decided_by(names, chosen), as_it_came=True)

    def effect_since(self, since: datetime, chosen: Names) -> RuleEffect:
        """What they will do with the mail since then, as it is now: what left the inbox before does not leave it."""
        late = [each for each in self._seen if each.at >= since]
        return _count(late, (each for each in self._foresee(chosen) if each.seen.at >= since), as_it_came=False)

    def effect_lately(self, chosen: Names) -> RuleEffect:
        """The same for the last 7 days."""
        return self.effect_since(self.now - LATELY, chosen)

    @property
    def reaches_lately(self) -> bool:
        """Whether all mail of the last 7 days was looked at. If not, there is more than it counts."""
        return self.reaches is None or self.reaches <= self.now - LATELY

    def examples_of(self, chosen: Names, names: Names) -> Sequence[LookExample]:
        """The newest messages that rules with these names would have decided, as far as possible of several senders."""
        return _examples(self._decided_by(names, chosen))

    def _decided_by(self, names: Names, chosen: Names) -> "list[_Foreseen]":
        return [each for each in self._foresee(chosen) if not set(each.rules).isdisjoint(names)]

    def _foresee(self, chosen: Names) -> list[_Foreseen]:
        """For each choice once: a page asks again and again."""
        wanted = frozenset(self._rules.in_use | self._rules.ids_of(chosen))
        if wanted not in self._foreseen:
            if len(self._foreseen) >= MOST_CHOICES:
                self._foreseen.clear()
            self._foreseen[wanted] = _foresee(self._seen, self._rules, wanted)
        return self._foreseen[wanted]


@dataclass(frozen=True, slots=True)
class _LookRules:
    """The rules of a look: those in use, the person's own, on and off, those of each starter; and what else decides."""

    in_use: Set[UUID]
    own_ids: Set[UUID]
    off_ids: Set[UUID]
    by_starter: Mapping[str, Set[UUID]]
    rules: Sequence[Rule]
    context: SimulationContext

    def ids_of(self, chosen: Names) -> Set[UUID]:
        return frozenset(id for name in chosen for id in self.by_starter.get(name, ()))


async def take_first_look(
    database: Database,
    settings: Settings,
    account: str,
    open_source: OpenSource,
    progress: Progress = lambda _number: None,
    *,
    now: datetime,
) -> FirstLook:
    """Look at the newest mail of a connected account. The mailbox is only read, and nothing is stored."""
    fetched = await fetch_mail(database, account, MOST, open_source, progress, now - LATELY)
    return await look_at(database, settings, fetched, now)


async def look_at(database: Database, settings: Settings, fetched: FetchedMail, now: datetime) -> FirstLook:
    """Look at mail that was fetched from a mailbox."""
    stored = await database.run(list_rules())
    context = SimulationContext(
        await database.run(restraints(UUID(int=0), now)),
        {},
        policy_of(settings),
        has_model=False,
        answered_again=timedelta(days=settings.outbound.auto_reply_days),
    )
    filters = IngestionPolicy(await own_filters(database, settings))
    # In a thread, so that the server still answers meanwhile.
    return await asyncio.to_thread(_look, fetched, _rules_of(stored, context), stored, filters, settings, now)


def _look(
    fetched: FetchedMail,
    rules: _LookRules,
    stored: Sequence[RuleView],
    filters: IngestionPolicy,
    settings: Settings,
    now: datetime,
) -> FirstLook:
    mail = fetched.newest.messages
    history = read_history(mail, frozenset({fetched.email}))
    recipient = recipient_of(history, [fetched.email], fetched.contacts, filters, fetched.hosts)
    recipient = replace(recipient, account_id=fetched.account_id)
    seen = sorted(_see(mail, recipient, Rulebook(rules.rules), now), key=lambda each: each.at)
    alone = _foresee(seen, rules, rules.own_ids)
    looks = [
        _starter_look(starter, stored, seen, _foresee(seen, rules, rules.own_ids | rules.by_starter[starter.name]))
        for starter in starters()
    ]
    all_times = [each.at for each in seen]
    return FirstLook(
        fetched.email,
        len(seen),
        min(all_times, default=None),
        max(all_times, default=None),
        fetched.newest.reaches,
        settings.model.provider != "none",
        _own_look(seen, rules.own_ids, alone),
        _own_look(seen, rules.off_ids, _foresee(seen, rules, rules.off_ids)),
        looks,
        now,
        seen,
        rules,
    )


def _rules_of(stored: Sequence[RuleView], context: SimulationContext) -> _LookRules:
    """The rules in use and those of the starters. A starter rule that is stored counts as it is stored, and once its
    starter is chosen it is on.
    """
    shipped = {draft.name for starter in starters() for draft in starter.rules}
    known = {view.name: view for view in stored if view.name in shipped}
    own = [view for view in stored if view.name not in shipped]
    by_starter: dict[str, list[Rule]] = {}
    for starter in starters():
        kept = [known[draft.name].rule for draft in starter.rules if draft.name in known]
        new = rules_of([draft for draft in starter.rules if draft.name not in known])
        by_starter[starter.name] = [*kept, *new]
    return _LookRules(
        frozenset(view.id for view in stored if view.decides),
        frozenset(view.id for view in own if view.decides),
        frozenset(view.id for view in own if not view.decides),
        {name: frozenset(rule.id for rule in rules) for name, rules in by_starter.items()},
        [*(view.rule for view in own), *(rule for rules in by_starter.values() for rule in rules)],
        context,
    )


def _see(mail: Iterable[IncomingMessage], recipient: Recipient, book: Rulebook, now: datetime) -> Iterable[_Seen]:
    """The messages that rules decide: neither the person's own nor those that a filter skips."""
    for incoming in mail:
        try:
            arrival = arrive(incoming, recipient, now)
        except BadInput:
            continue
        message = arrival.message
        if message is None or not_decided(arrival, recipient)[0] != "stays":
            continue
        matching = book.matching(message.account_id, message.facts, arrival.at, unknown_conditions(message))
        rules = tuple(matching)
        facts = replace(message.facts, body_text=excerpt(message.facts.body_text))
        yield _Seen(replace(message, facts=facts), arrival.at, incoming.is_in_inbox, rules)


def _foresee(seen: Iterable[_Seen], rules: _LookRules, wanted: Set[UUID]) -> list[_Foreseen]:
    """The decisions of these rules about the messages, in the order in which they came, since earlier ones count."""
    simulated = SimulatedRules([], rules.context)
    found: list[_Foreseen] = []
    for each in seen:
        matches = Matches()
        for rule in each.matching:
            if rule.id in wanted:
                matches.offer(rule)
        outcome = matches.outcome()
        if outcome.matched is not None:
            names = tuple(rule.name for rule in outcome.rules)
            found.append(_Foreseen(each, names, simulated.decide(each.message, outcome, each.at)))
    return found


def _count(seen: Sequence[_Seen], foreseen: Iterable[_Foreseen], *, as_it_came: bool) -> RuleEffect:
    counted = RuleEffect(mail=len(seen))
    for each in foreseen:
        counted.add(each.decision, is_in_inbox=as_it_came or each.seen.is_in_inbox)
    return counted


def _starter_look(
    starter: Starter, stored: Sequence[RuleView], seen: Sequence[_Seen], foreseen: Iterable[_Foreseen]
) -> StarterLook:
    view = view_of(starter, stored)
    own = [each for each in foreseen if not set(each.rules).isdisjoint(view.rules)]
    look = StarterLook(view.name, view.title, view.description, view.rules, view.chosen, _examples(own), mail=len(seen))
    for each in own:
        look.add(each.decision)
    return look


def _own_look(seen: Sequence[_Seen], ids: Set[UUID], foreseen: Sequence[_Foreseen]) -> OwnLook | None:
    if not ids:
        return None
    look = OwnLook(len(ids), _examples(foreseen), mail=len(seen))
    for each in foreseen:
        look.add(each.decision)
    return look


def _examples(foreseen: Iterable[_Foreseen]) -> Sequence[LookExample]:
    """The newest of several senders, if there are; else the newest."""
    newest = list(foreseen)[::-1]
    times = Counter[str]()
    ranked: list[tuple[int, _Foreseen]] = []
    for each in newest:
        times[each.seen.message.facts.sender] += 1
        ranked.append((times[each.seen.message.facts.sender], each))
    ranked.sort(key=lambda each: each[0])
    return [_example(each) for _, each in ranked[:EXAMPLES]]


def _example(foreseen: _Foreseen) -> LookExample:
    facts, decision = foreseen.seen.message.facts, foreseen.decision
    return LookExample(facts.sender, facts.subject, foreseen.seen.at, asked(decision.action_type, decision.parameters))
