"""Users' regular expressions: RE2, with a limit on the cost of one search.

RE2 never backtracks, but linear time can still be slow: when its automaton does not fit into memory, it walks the
compiled program for every byte, and `(a?){1000}b` over 100 KiB takes seconds. So the program size is limited, and a
search reads only so many bytes that size times bytes stays within STEPS: some 40 ms at worst, and all of 100 KiB for
usual patterns. Other threads run during a search.

A `TextSet` searches one text for many literals or patterns in one pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import re2

STEPS = 3_000_000
LARGEST_PROGRAM = 3_000
SET_MEMORY = 32 * 1024 * 1024
KEPT_PATTERNS = 10_000


class PatternRefused(Exception):
    """A pattern is invalid or too costly. Has the problem and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. The size of its program limits how many bytes it may search."""

    text: str
    size: int
    compiled: "re2.Regexp" = field(repr=False)

    @property
    def reach(self) -> int:
        return STEPS // self.size

    def finds(self, *texts: str) -> bool:
        """Whether it matches anywhere in one of the texts, within its reach."""
        left = self.reach
        for text in texts:
            searched = utf8(text, left)
            if self.compiled.search(searched) is not None:
                return True
            left -= len(searched)
            if left <= 0:
                return False
        return False


@lru_cache(KEPT_PATTERNS)
def pattern_of(text: str) -> Pattern:
    """Compile a pattern, ignoring case. Raises PatternRefused."""
    try:
        compiled = re2.compile(text, _options())
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternRefused(
            f"is not an RE2 expression ({shown})", "fix it; RE2 supports neither back-references nor look-around"
        ) from None
    if compiled.programsize > LARGEST_PROGRAM:
        raise PatternRefused(
            f"compiles to {compiled.programsize:,} steps, of which {LARGEST_PROGRAM:,} are allowed",
            "use smaller counts in {…}, or make several rules of it",
        )
    return Pattern(text, compiled.programsize, compiled)


def utf8(text: str, most: int) -> bytes:
    """At most this many bytes of a text; its last character may be cut."""
    return text[:most].encode("utf-8", "replace")[:most]


class TextSet:
    """A set of literals or patterns that are searched for together."""

    def __init__(self, wanted: Iterable[str], *, literal: bool) -> None:
        self._wanted = tuple(dict.fromkeys(wanted))
        self._reach = STEPS if literal else min((pattern_of(each).reach for each in self._wanted), default=STEPS)
        self._literal = literal
        self._set = _compiled_set(self._wanted, literal)

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def found_in(self, *texts: str) -> Iterable[str]:
        """The members that are in one of the texts. May include others: all patterns, where the set itself fails."""
        searched = [text.encode("utf-8", "replace") for text in texts]
        if self._set is None or sum(map(len, searched)) > self._reach:
            return self._one_by_one(texts)
        found: dict[str, None] = {}
        everything = len(self._wanted)
        for each in searched:
            matched = self._set.Match(each)
            if everything not in matched:  # the automaton ran out of memory
                return self._one_by_one(texts)
            found.update((self._wanted[number], None) for number in matched if number != everything)
        return found

    def _one_by_one(self, texts: tuple[str, ...]) -> Iterable[str]:
        if not self._literal:
            return self._wanted
        return [each for each in self._wanted if any(each in text for text in texts)]


def _compiled_set(wanted: tuple[str, ...], literal: bool) -> "re2.Set | None":
    options = _options()
    options.max_mem = SET_MEMORY
    if literal:
        options.case_sensitive = True  # literals and their text are already casefolded
    try:
        found = re2.Set.SearchSet(options)
        for each in wanted:
            found.Add(re2.escape(each) if literal else each)
        found.Add(r"\A")  # matches any text, at one place only: a set that does not find it has failed
        found.Compile()
    except re2.error:  # together they are too large
        return None
    return found


def _options() -> re2.Options:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False  # the user gets the error; it does not belong in the log
    return options
