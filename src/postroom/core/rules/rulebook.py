"""Many rules, compiled once: the same result as trying them one by one, only faster.

Of 1,000 rules only those are tried, in order, that the index finds for a message (core/rules/rule_index.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.rules.conditions import Node, as_test, read_conditions
from postroom.core.rules.facts import MessageFacts, Seen
from postroom.core.rules.leaf import BrokenRule, Test
from postroom.core.rules.needs import READ_THE_TEXT
from postroom.core.rules.patterns import STEPS
from postroom.core.rules.rule import Outcome, Rule, Scope, ScopeTest, kinds_used, read_scope
from postroom.core.rules.rule_index import RuleIndex, leaves_of

# Casefolding and searching a longer body would block an event loop for too long.
LONG_BODY = 200_000


@dataclass(frozen=True, slots=True)
class _Entry:
    rule: Rule
    in_scope: ScopeTest | None
    test: Test
    kinds: frozenset[str]


class Rulebook:
    """Compiled rules in their order, with an index."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._entries: list[_Entry] = []
        self._subject_steps = 0
        self._header_steps: dict[str, int] = {}
        self._reads_text = False
        broken: list[tuple[Rule, str]] = []
        read: list[tuple[Scope, Node]] = []
        for rule in sorted(rules, key=lambda each: each.order):
            try:
                scope, node = read_scope(rule.scope, rule.scope_ref), read_conditions(rule.conditions)
            except BrokenRule as error:
                broken.append((rule, str(error)))
            else:
                read.append((scope, node))
                self._entries.append(_Entry(rule, scope.test, as_test(node), kinds_used(rule.conditions)))
                self._count_costs(node)
        self.broken = tuple(broken)
        self._index = RuleIndex(read)

    def __len__(self) -> int:
        return len(self._entries)

    def _count_costs(self, node: Node) -> None:
        for leaf in leaves_of(node):
            self._reads_text |= leaf.kind in READ_THE_TEXT
            if leaf.pattern is None:
                continue
            if leaf.kind == "subject_regex":
                self._subject_steps += leaf.pattern.size
                continue
            for _, header in leaf.keys or ():
                name = header.partition("\n")[0]
                self._header_steps[name] = self._header_steps.get(name, 0) + leaf.pattern.size

    def decide(
        self, account_id: UUID, message: MessageFacts, now: datetime, hidden: frozenset[str] = frozenset()
    ) -> Outcome:
        """Apply the rules to a message. `hidden` are the kinds of conditions that cannot be evaluated, since that part
        of the message is not stored: rules that use one of them are skipped.
        """
        found = Matches()
        for rule in self.matching(account_id, message, now, hidden):
            found.offer(rule)
            if found.is_settled:
                break
        return found.outcome(self.broken)

    def matching(
        self, account_id: UUID, message: MessageFacts, now: datetime, hidden: frozenset[str] = frozenset()
    ) -> Iterator[Rule]:
        """Every rule that matches, in order, found lazily."""
        seen, account = Seen(message, now), str(account_id)
        for number in self._index.candidates(account, seen):
            entry = self._entries[number]
            if (
                not (hidden and hidden & entry.kinds)
                and (entry.in_scope is None or entry.in_scope(account, seen))
                and entry.test(seen)
            ):
                yield entry.rule

    def is_heavy(self, message: MessageFacts) -> bool:
        """Whether deciding may take tens of milliseconds, and so belongs in a thread instead of the event loop."""
        steps = self._subject_steps * len(message.subject)
        if per_header := self._header_steps:
            steps += sum(per_header.get(name.lower(), 0) * len(value) for name, value in message.headers)
        return steps > STEPS // 2 or (self._reads_text and len(message.body_text) > LONG_BODY)


class Matches:
    """Collects the rules that match a message, offered in order. The first that does not continue is the last one."""

    def __init__(self) -> None:
        self._active: list[Rule] = []
        self._shadowed: list[Rule] = []
        self.is_settled = False

    def offer(self, rule: Rule) -> None:
        if self.is_settled:
            return
        (self._shadowed if rule.shadow else self._active).append(rule)
        self.is_settled = not (rule.shadow or rule.continues)

    def outcome(self, broken: tuple[tuple[Rule, str], ...] = ()) -> Outcome:
        first = self._active[0] if self._active else None
        return Outcome(first, broken, tuple(self._shadowed), tuple(self._active[1:]))
