"""Finds the rules that a message may match.

Most rules cannot match most messages, and what a match requires is known beforehand: a sender, a domain, a label, a
header, a word in the subject. Each rule is filed under such keys (`needed_keys`): a message that it matches has at
least one of them. So only those rules are tried that share a key with the message or have no key, such as a `not`.
Phrases and patterns are looked up for all rules in one pass over the text. Of several phrases that a rule needs, it is
filed under the one that the fewest rules need: the rarest, as far as the rules can tell.

The body is not split into words, which would cost more than all else. Of a phrase in one of the other fields, which are
short, one word is looked up: the one that the fewest phrases have.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from postroom.core.rules.conditions import All, AnyOf, Key, Leaf, Node, Not, Seen
from postroom.core.rules.patterns import TextSet
from postroom.core.rules.people import ADDRESS_KINDS
from postroom.core.rules.properties import list_name
from postroom.core.rules.rule import Scope
from postroom.core.rules.texts import WORD_FIELDS

# Where there is a choice of keys: first those that the fewest messages have and that are cheapest to find.
SELECTIVE = (
    *("sender", "to", *ADDRESS_KINDS, "domain", "list", "list_id", "subject", "pattern"),
    *("from_name", "from_words", "to_name", "to_words", "cc_words", "bcc_words", "reply_to_words", "list_words"),
    *("attachment_name", "subject_words", "header_pattern", "label", "attachment_type", "category", "header"),
    *("body", "body_words", "words", "account"),
)
IN_BODY = [kind for kind, fields in WORD_FIELDS.items() if "body" in fields]
RANK = {slot: rank for rank, slot in enumerate(SELECTIVE)}
Uses = Mapping[Key, int]
"""How many rules could be filed under each key."""


class RuleIndex:
    """Rules by their numbers, filed under the keys of the messages that they may match."""

    def __init__(self, rules: Sequence[tuple[Scope, Node]]) -> None:
        self._always: list[int] = []
        self._filed: dict[Key, list[int]] = {}
        uses = _uses(rules)
        for number, (scope, node) in enumerate(rules):
            keys = _better(needed_keys(node, uses), None if scope.key is None else (scope.key,), uses)
            if keys is None:
                self._always.append(number)
            for key in keys or ():
                self._filed.setdefault(key, []).append(number)
        self._slots = frozenset(slot for slot, _ in self._filed)
        self._addresses = [kind for kind in ADDRESS_KINDS if kind in self._slots]
        self._words = self._words_of_fields()
        self._subjects = TextSet(self._wanted("subject"), literal=True)
        self._bodies = TextSet(self._wanted("body"), literal=True)
        self._phrases = TextSet([phrase for kind in IN_BODY for phrase in self._wanted(kind)], literal=True)
        self._list_ids = TextSet(self._wanted("list_id"), literal=True)
        self._patterns = TextSet(self._wanted("pattern"), literal=False)
        self._header_patterns = self._patterns_of_headers()

    def _wanted(self, slot: str) -> list[str]:
        return [wanted for each, wanted in self._filed if each == slot]

    def _words_of_fields(self) -> list[tuple[str, frozenset[str], dict[str, list[Key]]]]:
        """For each field but the body: the words to look for, and the keys of the phrases with each of them."""
        count = Counter(word for kind in WORD_FIELDS for phrase in self._wanted(kind) for word in phrase.split())
        found: dict[str, dict[str, list[Key]]] = {}
        for kind, fields in WORD_FIELDS.items():
            for phrase in self._wanted(kind):
                rarest = min(phrase.split(), key=lambda word: (count[word], -len(word)))
                for field in fields:
                    if field != "body":
                        found.setdefault(field, {}).setdefault(rarest, []).append((kind, phrase))
        return [(field, frozenset(keys), keys) for field, keys in found.items()]

    def _patterns_of_headers(self) -> dict[str, TextSet]:
        found: dict[str, list[str]] = {}
        for wanted in self._wanted("header_pattern"):
            name, _, pattern = wanted.partition("\n")
            found.setdefault(name, []).append(pattern)
        return {name: TextSet(patterns, literal=False) for name, patterns in found.items()}

    def candidates(self, account: str, seen: Seen) -> list[int]:
        """The numbers of the rules that the message may match, in order."""
        numbers = set(self._always)
        filed = self._filed
        for key in self._keys_of(account, seen):
            if (found := filed.get(key)) is not None:
                numbers.update(found)
        return sorted(numbers)

    def _keys_of(self, account: str, seen: Seen) -> Iterator[Key]:
        """The index keys of the message, of those kinds that some rule is filed under."""
        yield "sender", seen.sender
        yield "domain", seen.domain
        yield "account", account
        yield from self._people(seen)
        yield from self._properties(seen)
        for field, wanted, keys in self._words:
            for word in wanted.intersection(seen.folded[field].words):
                yield from keys[word]
        yield from self._texts(seen)

    def _people(self, seen: Seen) -> Iterator[Key]:
        if "to" in self._slots:
            for address in seen.message.to:
                yield "to", address
                yield "to", f"@{address.rpartition('@')[2]}"
        for kind in self._addresses:
            for address in seen.addresses[kind]:
                yield kind, address
                yield kind, f"@{address.rpartition('@')[2]}"

    def _properties(self, seen: Seen) -> Iterator[Key]:
        slots, message = self._slots, seen.message
        if "label" in slots:
            for label in message.labels:
                yield "label", label
        if "category" in slots:
            for category in message.categories or ():
                yield "category", category
        if "attachment_type" in slots:
            for _, kind in message.attachments or ():
                yield "attachment_type", kind.lower()
                yield "attachment_type", f"{kind.lower().partition('/')[0]}/*"
        if "header" in slots:
            for name in seen.headers:
                yield "header", name
        if "list" in slots:
            for value in seen.list_ids:
                yield "list", list_name(value)

    def _texts(self, seen: Seen) -> Iterator[Key]:
        slots = self._slots
        if "subject" in slots:
            for wanted in self._subjects.found_in(seen.subject):
                yield "subject", wanted
        if "pattern" in slots:
            for wanted in self._patterns.found_in(seen.message.subject):
                yield "pattern", wanted
        if "body" in slots:
            for wanted in self._bodies.found_in(seen.body):
                yield "body", wanted
        if self._phrases:
            for wanted in self._phrases.found_in(*seen.folded["body"].texts):
                for kind in IN_BODY:
                    yield kind, wanted
        if "list_id" in slots and seen.list_ids:
            for wanted in self._list_ids.found_in(*seen.list_ids):
                yield "list_id", wanted
        for name, patterns in self._header_patterns.items():
            if name in seen.headers:
                for wanted in patterns.found_in(*seen.headers[name]):
                    yield "header_pattern", f"{name}\n{wanted}"


def needed_keys(node: Node, uses: Uses | None = None) -> tuple[Key, ...] | None:
    """Keys of which every matching message has at least one; None when there are no such keys."""
    uses = uses if uses is not None else {}
    match node:
        case Leaf() if node.needs:
            return (min(node.needs, key=lambda key: (uses.get(key, 0), -len(key[1]))),)
        case Leaf():
            return node.keys
        case Not():
            return None
        case All(parts):
            best: tuple[Key, ...] | None = None
            for part in parts:
                best = _better(best, needed_keys(part, uses), uses)
            return best
        case AnyOf(parts):
            found = [needed_keys(part, uses) for part in parts]
            known = [keys for keys in found if keys is not None]
            return tuple({key: None for keys in known for key in keys}) if len(known) == len(found) else None


def leaves_of(node: Node) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Not(part):
            yield from leaves_of(part)
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves_of(part)


def _uses(rules: Sequence[tuple[Scope, Node]]) -> Uses:
    return Counter(key for _, node in rules for leaf in leaves_of(node) for key in leaf.needs)


def _better(one: tuple[Key, ...] | None, other: tuple[Key, ...] | None, uses: Uses) -> tuple[Key, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other, key=lambda keys: (max(RANK[slot] for slot, _ in keys), len(keys), _used(keys, uses)))


def _used(keys: tuple[Key, ...], uses: Uses) -> int:
    return sum(uses.get(key, 0) for key in keys)
