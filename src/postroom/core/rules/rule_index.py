"""Finds the rules that a message may match.

Most rules cannot match most messages, and the needs of a match are known beforehand: a sender, a domain, a label, a
header, a word in the subject. Each rule is filed under such keys (`needed_keys`): a message that it matches has at
least one of them. So only those rules are tried that share a key with the message or have no key, such as a `not`.
Phrases and patterns are looked up for all rules in one pass over the text. Of several phrases that a rule needs, it is
filed under the one that the fewest rules need: probably the rarest.

The body is not split into words, which would cost more than all else. Of a phrase in one of the other fields, which are
short, one word is looked up: the one that the fewest phrases have.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from postroom.core.rules.conditions import SPECS, All, AnyOf, Node, Not
from postroom.core.rules.facts import ADDRESS_HEADERS, Seen, headers_of
from postroom.core.rules.leaf import Key, Leaf
from postroom.core.rules.patterns import TextSet
from postroom.core.rules.people import ADDRESSES
from postroom.core.rules.properties import list_name
from postroom.core.rules.rule import Scope

ADDRESS_KINDS = tuple(spec.kind for spec in ADDRESSES)
WORD_FIELDS: Mapping[str, tuple[str, ...]] = {kind: spec.words_in for kind, spec in SPECS.items() if spec.words_in}
IN_SUBJECT = [kind for kind, fields in WORD_FIELDS.items() if fields == ("subject",)]
IN_BODY = sorted((kind for kind in WORD_FIELDS if "body" in WORD_FIELDS[kind]), key=lambda kind: len(WORD_FIELDS[kind]))
# Where there is a choice of keys: first those that the fewest messages have and that are cheapest to find.
SELECTIVE = (
    *("sender", "to", *ADDRESS_KINDS, "domain", "list", "list_id", "subject", "pattern"),
    *(kind for kind in WORD_FIELDS if kind not in (*IN_SUBJECT, *IN_BODY)),
    *(*IN_SUBJECT, "header_pattern", "label", "attachment_type", "category", "header"),
    *("body", *IN_BODY, "account"),
)
RANK = {slot: rank for rank, slot in enumerate(SELECTIVE)}
Uses = Mapping[Key, int]
"""How many rules could be filed under each key."""
Filed = dict[str, list[int]]
"""Of one kind of key: the numbers of the rules under each."""
NOTHING: Filed = {}


class RuleIndex:
    """Rules by their numbers, filed under the keys of the messages that they may match."""

    def __init__(self, rules: Sequence[tuple[Scope, Node]]) -> None:
        self._always: list[int] = []
        self._filed: dict[str, Filed] = {}
        uses = _uses(rules)
        for number, (scope, node) in enumerate(rules):
            keys = _better(needed_keys(node, uses), None if scope.key is None else (scope.key,), uses)
            if keys is None:
                self._always.append(number)
            for slot, wanted in keys or ():
                self._filed.setdefault(slot, {}).setdefault(wanted, []).append(number)
        self._addresses = [(kind, self._filed[kind]) for kind in ADDRESS_KINDS if kind in self._filed]
        self._words = self._words_of_fields()
        self._subjects = TextSet(self._of("subject"), literal=True)
        self._bodies = TextSet(self._of("body"), literal=True)
        self._in_body = _merge([self._of(kind) for kind in IN_BODY])
        self._phrases = TextSet(self._in_body, literal=True)
        self._list_ids = TextSet(self._of("list_id"), literal=True)
        self._patterns = TextSet(self._of("pattern"), literal=False)
        self._header_patterns = self._patterns_of_headers()

    def _of(self, slot: str) -> Filed:
        return self._filed.get(slot, {})

    def _words_of_fields(self) -> list[tuple[str, tuple[str, ...], Filed]]:
        """For each field but the body: the headers that it is read from, if it is, and the rules under each word."""
        count = Counter(word for kind in WORD_FIELDS for phrase in self._of(kind) for word in phrase.split())
        found: dict[str, list[Filed]] = {}
        for kind, fields in WORD_FIELDS.items():
            for phrase, numbers in self._of(kind).items():
                rarest = min(phrase.split(), key=lambda word: (count[word], -len(word)))
                for field in fields:
                    if field != "body":
                        found.setdefault(field, []).append({rarest: numbers})
        return [(field, headers_of(field), _merge(each)) for field, each in found.items()]

    def _patterns_of_headers(self) -> list[tuple[str, TextSet, Filed]]:
        found: dict[str, Filed] = {}
        for wanted, numbers in self._of("header_pattern").items():
            name, _, pattern = wanted.partition("\n")
            found.setdefault(name, {})[pattern] = numbers
        return [(name, TextSet(filed, literal=False), filed) for name, filed in found.items()]

    def candidates(self, account: str, seen: Seen) -> list[int]:
        """The numbers of the rules that the message may match, in order."""
        numbers = set(self._always)
        for slot, value in (("sender", seen.sender), ("domain", seen.domain), ("account", account)):
            numbers.update(self._filed.get(slot, NOTHING).get(value, ()))
        self._by_people(seen, numbers)
        self._by_properties(seen, numbers)
        headers = seen.headers
        for field, names, filed in self._words:
            if not names or not headers.keys().isdisjoint(names):
                for word in filed.keys() & seen.folded[field].words:
                    numbers.update(filed[word])
        self._by_texts(seen, numbers)
        return sorted(numbers)

    def _by_people(self, seen: Seen, numbers: set[int]) -> None:
        if filed := self._of("to"):
            _add_addressed(seen.message.to, filed, numbers)
        for kind, filed in self._addresses:
            if kind == "from" or not seen.headers.keys().isdisjoint(ADDRESS_HEADERS[kind]):
                _add_addressed(seen.addresses[kind], filed, numbers)

    def _by_properties(self, seen: Seen, numbers: set[int]) -> None:
        message = seen.message
        if filed := self._of("label"):
            for label in filed.keys() & message.labels:
                numbers.update(filed[label])
        if filed := self._of("category"):
            for category in message.categories or ():
                numbers.update(filed.get(category, ()))
        if filed := self._of("attachment_type"):
            for _, kind in message.attachments or ():
                numbers.update(filed.get(kind.lower(), ()))
                numbers.update(filed.get(f"{kind.lower().partition('/')[0]}/*", ()))
        if filed := self._of("header"):
            for name in filed.keys() & seen.headers.keys():
                numbers.update(filed[name])
        if filed := self._of("list"):
            for value in seen.list_ids:
                numbers.update(filed.get(list_name(value), ()))

    def _by_texts(self, seen: Seen, numbers: set[int]) -> None:
        if filed := self._of("subject"):
            for wanted in self._subjects.found_in(seen.subject):
                numbers.update(filed[wanted])
        if filed := self._of("pattern"):
            for wanted in self._patterns.found_in(seen.message.subject):
                numbers.update(filed[wanted])
        if filed := self._of("body"):
            for wanted in self._bodies.found_in(seen.body):
                numbers.update(filed[wanted])
        if self._in_body:
            for wanted in self._phrases.found_in(*seen.folded["body"].texts):
                numbers.update(self._in_body[wanted])
        if (filed := self._of("list_id")) and seen.list_ids:
            for wanted in self._list_ids.found_in(*seen.list_ids):
                numbers.update(filed[wanted])
        for name, patterns, filed in self._header_patterns:
            if name in seen.headers:
                for wanted in patterns.found_in(*seen.headers[name]):
                    numbers.update(filed[wanted])


def _add_addressed(found: Iterable[str], filed: Filed, numbers: set[int]) -> None:
    for address in found:
        numbers.update(filed.get(address, ()))
        numbers.update(filed.get(f"@{address.rpartition('@')[2]}", ()))


def _merge(each: Iterable[Filed]) -> Filed:
    """All of them in one."""
    found: Filed = {}
    for filed in each:
        for wanted, numbers in filed.items():
            found.setdefault(wanted, []).extend(numbers)
    return found


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
    return min(one, other, key=lambda keys: (max(RANK[slot] for slot, _ in keys), len(keys), _count_uses(keys, uses)))


def _count_uses(keys: tuple[Key, ...], uses: Uses) -> int:
    return sum(uses.get(key, 0) for key in keys)
