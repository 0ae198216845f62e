"""Regexes of users: RE2, with a bound on what one search may cost.

RE2 never backtracks, but linear is not yet quick: where its automaton does not fit into memory it walks the compiled
program for every byte, and `(a?){1000}b` over 100 KiB takes seconds. So a program has a greatest size, and a search
looks only as far as size times bytes stays within STEPS: some 40 ms at worst, and all of 100 KiB for what people
usually write. A search lets other threads run meanwhile.

A `TextSet` asks many literals or patterns of one text in one pass.
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
    """What is wrong with a pattern, and the remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern: the size of its program, and so how many bytes it looks at."""

    text: str
    size: int
    compiled: "re2.Regexp" = field(repr=False)

    @property
    def reach(self) -> int:
        return STEPS // self.size

    def finds(self, *texts: str) -> bool:
        """Whether it fits anywhere in one of the texts, as far as it looks at them."""
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
    """Compiled, in any case of letters. Raises PatternRefused."""
    try:
        compiled = re2.compile(text, _options())
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        told = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternRefused(
            f"is no RE2 expression ({told})", "mend it; RE2 knows neither back-references nor look-around"
        ) from None
    if compiled.programsize > LARGEST_PROGRAM:
        raise PatternRefused(
            f"compiles to {compiled.programsize:,} steps, of which {LARGEST_PROGRAM:,} are allowed",
            "use smaller counts in {…}, or make several rules of it",
        )
    return Pattern(text, compiled.programsize, compiled)


def utf8(text: str, most: int) -> bytes:
    """The first bytes of a text; a character at the very end may be cut."""
    return text[:most].encode("utf-8", "replace")[:most]


class TextSet:
    """Which of many literals, or of many patterns, are in a text."""

    def __init__(self, wanted: Iterable[str], *, literal: bool) -> None:
        self._wanted = tuple(dict.fromkeys(wanted))
        self._reach = STEPS if literal else min((pattern_of(each).reach for each in self._wanted), default=STEPS)
        self._literal = literal
        self._set = _compiled_set(self._wanted, literal)

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def found_in(self, text: str) -> Iterable[str]:
        """At least those that are in it: all of them where the set itself cannot tell."""
        searched = text.encode("utf-8", "replace")
        if self._set is None or len(searched) > self._reach:
            return self._one_by_one(text)
        matched = self._set.Match(searched)
        everything = len(self._wanted)
        if everything not in matched:  # the automaton ran out of memory, and says nothing
            return self._one_by_one(text)
        return [self._wanted[number] for number in matched if number != everything]

    def _one_by_one(self, text: str) -> Iterable[str]:
        return [each for each in self._wanted if each in text] if self._literal else self._wanted


def _compiled_set(wanted: tuple[str, ...], literal: bool) -> "re2.Set | None":
    options = _options()
    options.max_mem = SET_MEMORY
    options.literal = literal
    options.case_sensitive = literal  # literals, and the text they are asked of, are casefolded already
    try:
        found = re2.Set.SearchSet(options)
        for each in wanted:
            found.Add(each)
        found.Add("")  # matches everything: a set that does not find it has failed
        found.Compile()
    except re2.error:  # all of them together are too large
        return None
    return found


def _options() -> re2.Options:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False  # the error reaches the user as the reason, not the log
    return options
