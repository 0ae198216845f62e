"""Many rules, compiled once: the same result as trying them one by one, only faster.

Most rules cannot match most messages, and what a match requires is known beforehand: a sender, a domain, a label, a
header, a word in the subject. Each rule is indexed under such keys (`needed_keys`): a message that it matches has at
least one of them. So of 1,000 rules only those are tried, in order, that share a key with the message or have no key,
such as a `not`. Words and patterns are looked up for all rules in one pass over the text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.rules.conditions import (
    All,
    AnyOf,
    BrokenRule,
    Key,
    Leaf,
    MessageFacts,
    Node,
    Not,
    Seen,
    Test,
    as_test,
    read_conditions,
)
from postroom.core.rules.patterns import STEPS, TextSet
from postroom.core.rules.rule import Outcome, Rule, Scope, ScopeTest, kinds_used, read_scope

__all__ = ["Matches", "Outcome", "Rulebook", "needed_keys"]

# Where there is a choice of keys: first those that the fewest messages have and that are cheapest to find.
SELECTIVE = ("sender", "to", "domain", "subject", "pattern", "label", "header", "body", "account")
RANK = {slot: rank for rank, slot in enumerate(SELECTIVE)}
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
        self._always: list[int] = []
        self._filed: dict[Key, list[int]] = {}
        self._subject_steps = 0
        self._header_steps: dict[str, int] = {}
        broken: list[tuple[Rule, str]] = []
        for rule in sorted(rules, key=lambda each: each.order):
            try:
                scope, node = read_scope(rule.scope, rule.scope_ref), read_conditions(rule.conditions)
            except BrokenRule as error:
                broken.append((rule, str(error)))
            else:
                self._file(rule, scope, node)
        self.broken = tuple(broken)
        self._subjects = TextSet(self._wanted("subject"), literal=True)
        self._patterns = TextSet(self._wanted("pattern"), literal=False)
        self._bodies = TextSet(self._wanted("body"), literal=True)
        self._slots = frozenset(slot for slot, _ in self._filed)

    def __len__(self) -> int:
        return len(self._entries)

    def _file(self, rule: Rule, scope: Scope, node: Node) -> None:
        number = len(self._entries)
        self._entries.append(_Entry(rule, scope.test, as_test(node), kinds_used(rule.conditions)))
        for leaf in _leaves(node):
            if leaf.pattern is not None and leaf.kind == "subject_regex":
                self._subject_steps += leaf.pattern.size
            elif leaf.pattern is not None:
                for _, header in leaf.keys or ():
                    self._header_steps[header] = self._header_steps.get(header, 0) + leaf.pattern.size
        keys = _better(needed_keys(node), None if scope.key is None else (scope.key,))
        if keys is None:
            self._always.append(number)
            return
        for key in keys:
            self._filed.setdefault(key, []).append(number)

    def _wanted(self, slot: str) -> list[str]:
        return [wanted for each, wanted in self._filed if each == slot]

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
        for number in self._candidates(account, seen):
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
        return steps > STEPS // 2 or ("body" in self._slots and len(message.body_text) > LONG_BODY)

    def _candidates(self, account: str, seen: Seen) -> list[int]:
        numbers = set(self._always)
        filed = self._filed
        for key in self._keys_of(account, seen):
            if (found := filed.get(key)) is not None:
                numbers.update(found)
        return sorted(numbers)

    def _keys_of(self, account: str, seen: Seen) -> Iterator[Key]:
        """The index keys of the message, of those kinds that some rule is indexed under."""
        slots = self._slots
        yield "sender", seen.sender
        yield "domain", seen.domain
        yield "account", account
        if "to" in slots:
            for address in seen.message.to:
                yield "to", address
                yield "to", f"@{address.rpartition('@')[2]}"
        if "label" in slots:
            for label in seen.message.labels:
                yield "label", label
        if "header" in slots:
            for name in seen.headers:
                yield "header", name
        if "subject" in slots:
            for wanted in self._subjects.found_in(seen.subject):
                yield "subject", wanted
        if "pattern" in slots:
            for wanted in self._patterns.found_in(seen.message.subject):
                yield "pattern", wanted
        if "body" in slots:
            for wanted in self._bodies.found_in(seen.body):
                yield "body", wanted


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


def needed_keys(node: Node) -> tuple[Key, ...] | None:
    """Keys of which every matching message has at least one; None when there are no such keys."""
    match node:
        case Leaf():
            return node.keys
        case Not():
            return None
        case All(parts):
            best: tuple[Key, ...] | None = None
            for part in parts:
                best = _better(best, needed_keys(part))
            return best
        case AnyOf(parts):
            found = [needed_keys(part) for part in parts]
            known = [keys for keys in found if keys is not None]
            return tuple({key: None for keys in known for key in keys}) if len(known) == len(found) else None


def _better(one: tuple[Key, ...] | None, other: tuple[Key, ...] | None) -> tuple[Key, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other, key=lambda keys: (max(RANK[slot] for slot, _ in keys), len(keys)))


def _leaves(node: Node) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Not(part):
            yield from _leaves(part)
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
