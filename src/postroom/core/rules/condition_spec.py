"""The declaration of a condition: everything that differs from one kind of condition to another, said once.

Parsing, the index, explanations, pages, the reference and the exchange with Gmail and Sieve read it. The declarations
are in core/rules/people.py, texts.py, properties.py and measures.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import Check, Leaf, yes_or_no
from postroom.core.rules.logic import Logic

MOST_SHOWN = 3

Fact = Literal[
    "size",
    "attachments",
    "own_addresses",
    "categories",
    "sender_in_contacts",
    "sender_seen_before",
    "reply_to_mine",
]
"""A field of MessageFacts that is not known of all mail: of mail stored by an earlier version, or read from a file."""
Need = Literal["text", "files", "headers", "recipients"] | Fact
"""A part of a message: its text, its attachments as stored with the whole message, its headers, To and Cc, or a fact.

While it is missing, the condition is neither true nor false, and rules that use it are skipped.
"""
FACTS: tuple[Fact, ...] = get_args(Fact)

Says = Callable[[object], str | None]
"""The condition with this argument as a clause, for people; None if the argument is not one that it takes."""
Compare = Callable[[Any, Any], bool]
"""Compares two arguments, without looking at a message."""


class Inexpressible(Exception):
    """The other format cannot express this."""


@dataclass(frozen=True, slots=True)
class GmailTerm:
    """A condition in Gmail's search.

    `write` raises Inexpressible; without it, a search cannot say the condition. `read` has the meaning of the value, by
    operator. `of_words` says that those values are words, which some marks separate.
    """

    write: Callable[[Any], str] | None
    read: Mapping[str, Callable[[str], Logic]] = field(default_factory=dict[str, Callable[[str], Logic]])
    of_words: bool = False


SieveTerm = Callable[[Any, set[str]], str]
"""Writes a condition as a Sieve test, and adds the extensions that it requires. Raises Inexpressible."""


class FormField(NamedTuple):
    """The condition in the form for rules. Without an example it takes no value; the lowest place comes first."""

    text: str
    example: str = ""
    place: int = 1_000
    read: Callable[[str], object] = str
    write: Callable[[object], str | None] = lambda argument: argument if isinstance(argument, str) else None


@dataclass(frozen=True, slots=True)
class ConditionSpec:
    """One kind of condition.

    `check` checks the argument and returns the test. `meaning`, in Markdown, and `example` are for the reference.
    `observed` says of a message for which it does not hold what there is instead. `implies` and `excludes` compare its
    argument with that of the kinds named there: whether that one certainly holds too, or certainly does not. `words_in`
    are the fields in which it looks for words.
    """

    kind: str
    check: Callable[[str, object], Check]
    meaning: str
    example: object
    says: Says
    observed: Callable[[Any, Seen], str]
    needs: frozenset[Need] = frozenset()
    implies: Mapping[str, Compare] = field(default_factory=dict[str, Compare])
    excludes: Mapping[str, Compare] = field(default_factory=dict[str, Compare])
    gmail: GmailTerm | None = None
    sieve: SieveTerm | None = None
    form: FormField | None = None
    words_in: tuple[str, ...] = ()
    is_slow: bool = False

    def leaf(self, field: str, argument: object) -> Leaf:
        """The condition with this argument; the field is for errors. Raises BrokenRule."""
        check = self.check(field, argument)
        return Leaf(self.kind, argument, check.test, check.keys, check.pattern, check.needs)

    @property
    def cost(self) -> int:
        """How much a test costs, roughly, without a pattern."""
        return 3 if self.is_slow else 2 if "text" in self.needs else 0


def needing(*needs: Need) -> frozenset[Need]:
    return frozenset(needs)


def says(clause: str) -> Says:
    """The clause with the argument in the place of its braces."""

    def said(argument: object) -> str | None:
        if not isinstance(argument, str | int):
            return None
        return clause.format(argument if isinstance(argument, str) else f"{argument:,} bytes")

    return said


def observed_whether(argument: object, seen: Seen) -> str:
    """The opposite is so, and there is nothing more to say about it."""
    return "it is not so" if argument else "it is so"


def whether(
    kind: str,
    holds: Callable[[Seen], bool | None],
    meaning: str,
    yes: str,
    no: str,
    observed: Callable[[Any, Seen], str] = observed_whether,
    needs: frozenset[Need] = frozenset(),
    gmail: GmailTerm | None = None,
    form: FormField | None = None,
) -> ConditionSpec:
    """The condition that something is so, or with `false` that it is not, and the clause for either."""

    def check(field: str, argument: object) -> Check:
        wanted = yes_or_no(field, argument)
        return Check(lambda seen: holds(seen) is wanted)

    def said(argument: object) -> str:
        return yes if argument is True else no

    return ConditionSpec(kind, check, meaning, True, said, observed, needs, gmail=gmail, form=form)


def of_texts(compare: Callable[[str, str], bool]) -> Compare:
    """Compare arguments that are texts; of others nothing is certain."""
    return lambda one, other: isinstance(one, str) and isinstance(other, str) and compare(one, other)
