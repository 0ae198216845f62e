"""Converts Sieve scripts to rules that decide the same, or not at all.

A script runs from top to bottom; of rules, the first that matches decides, unless it continues. So the ways through the
script become rules, in the order in which a message would take them:

    if A { fileinto "X"; stop; }        A         -> apply_label X, archive
    if B { fileinto "Y"; }              B         -> apply_label Y, archive; continue
    elsif C { addflag "\\\\Seen"; }       not B, C  -> mark_read
    if D { discard; }                   …

- A way that ends in `stop` is a rule; later rules need not exclude its mail, which is decided.
- A way that only adds something (a folder, a recipient) and runs on is a rule with `continue`, if nothing that follows
  could change what it added.
- Any other way is followed to its end, together with each of the ways through the rest of the script.

Where a test or command has no counterpart, its ways are refused. Rules that follow exclude their mail; if they cannot,
since the test itself has no counterpart, they are refused, too. core/rules/sieve_effects.py knows what commands do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from postroom.core.actions.steps import Step, combined, shown
from postroom.core.errors import BadInput
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.exchange import Imported
from postroom.core.rules.logic import Logic, every, negated
from postroom.core.rules.sieve_effects import HARMLESS, Effects, SieveOutcome, kinds_of
from postroom.core.rules.sieve_syntax import Call, Tag, read_sieve
from postroom.core.rules.sieve_tests import Extensions, condition_of

MOST_WAYS = 1_000
MOST_RULES = 1_000
MOST_TESTS = 100
# How often an `if` is looked at in all: once for each way that comes to it.
MOST_VISITS = 20_000
CHANGING = frozenset({"keep", "flags", "trash", "unknown"})
BRANCHES = ("if", "elsif", "else")

_Frame = tuple[Sequence[Call], int, "_Frame | None"]


TOO_MANY_WAYS = "there are too many ways through the script, since branches run on; end them with stop, or divide it"
TOO_MANY_RULES = f"it makes more than {MOST_RULES:,} rules; divide the script"


class _TooMany(Exception):
    """There are too many ways through the script, or too many rules."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A test that a way passes or fails; without a condition, it has no counterpart and `why` tells why.

    `passed` are the numbers of the ways that pass it, if this one fails it.
    """

    line: int
    condition: Logic | None
    why: str = ""
    passed: range = range(0)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way through an `if` with its branches: its tests, its effects, and whether it stops there."""

    tests: tuple[_Test, ...]
    effects: Effects
    stops: bool
    line: int


class _Guard(NamedTuple):
    """The tests that mail must have passed to get here. `implied` hold for all mail that is not decided yet."""

    tests: tuple[_Test, ...] = ()
    implied: tuple[Logic, ...] = ()
    is_inside: bool = False
    """Whether this is one way among others that have not been followed to their ends."""

    def with_way(self, way: _Way, settled: Sequence[bool]) -> "_Guard":
        """With the tests of a way; those failed are implied if all mail that passes them is decided."""
        needed: list[_Test] = []
        implied: list[Logic] = []
        for test in way.tests:
            is_implied = bool(test.passed) and test.condition is not None and all(settled[n] for n in test.passed)
            implied += [test.condition] if is_implied and test.condition is not None else []
            needed += [] if is_implied else [test]
        return _Guard((*self.tests, *needed), (*self.implied, *implied), self.is_inside)

    def without_way(self, way: _Way, is_settled: bool) -> "_Guard":
        """Without the mail of a way, which is implied if it is decided."""
        unknown = next((test for test in way.tests if test.condition is None), None)
        if unknown is not None:
            return _Guard((*self.tests, unknown), self.implied, self.is_inside)
        excluded = negated(every(test.condition for test in way.tests if test.condition is not None))
        if is_settled:
            return _Guard(self.tests, (*self.implied, excluded), self.is_inside)
        return _Guard((*self.tests, _Test(way.line, excluded)), self.implied, self.is_inside)

    @property
    def unknown(self) -> _Test | None:
        return next((test for test in self.tests if test.condition is None), None)

    @property
    def condition(self) -> Logic:
        needed = [test.condition for test in self.tests if test.condition is not None]
        found = every(needed)
        return every((*needed, *self.implied)) if found is True else found


def read_sieve_rules(text: str) -> Imported:
    """The ways through a script as rules. Raises BadInput when it is not Sieve."""
    commands = read_sieve(text)
    script = _Script(commands)
    try:
        script.follow(0, _Guard(), Effects())
    except _TooMany as error:
        script.imported.refuse(f"line {script.line}", "if", f"{error}; nothing from here on is imported")
    script.drop_last_idle_rules()
    return script.imported


class _Script:
    def __init__(self, commands: Sequence[Call]) -> None:
        self.imported = Imported()
        self._commands = commands
        self._extensions = Extensions(frozenset(_required_extensions(commands)))
        self._titles: dict[int, str] = {}
        self._idle: set[str] = set()
        self._tests: dict[int, _Test] = {}
        self._visits = 0
        self.line = 1
        """The line that the import has come to, of commands that are not in a block."""
        later = frozenset[str]()
        self._later = [later]
        for call in reversed(commands):
            later |= kinds_of(call)
            self._later.append(later)
        self._later.reverse()

    def follow(self, at: int, guard: _Guard, effects: Effects) -> bool:
        """Import the script from this command on, and return whether it decides about all such mail."""
        if len(guard.tests) > MOST_TESTS:
            raise _TooMany(TOO_MANY_WAYS)
        is_settled = True
        while at < len(self._commands):
            call = self._commands[at]
            at += 1
            if not guard.is_inside:
                self.line = call.line
            if call.name == "stop":
                self._tell_unreachable(self._commands[at:], f"the script stops on line {call.line}")
                return self._emit(guard, effects, call.line) and is_settled
            if call.name == "if":
                chain = _chain(self._commands, at - 1)
                at += len(chain) - 1
                ways = self._ways(chain, effects)
                rest, settled = self._branches(ways, at, guard, effects)
                is_settled = is_settled and settled
                if rest is None:
                    return is_settled
                guard = rest
            elif call.name in HARMLESS:
                after = effects.after(call, self._extensions, call.line)
                self._refuse(call.line, call.name, after.refused or "")
            elif call.name != "require":
                effects = effects.after(_alone(call), self._extensions, call.line)
        last = self._commands[-1].line if self._commands else 1
        return self._emit(guard, effects, last, ends=True) and is_settled

    def _branches(self, ways: Sequence[_Way], at: int, guard: _Guard, effects: Effects) -> tuple[_Guard | None, bool]:
        """Import the ways through an `if`. Returns the guard of the mail that runs on as before, if there is any, and
        whether the others are decided.
        """
        settled: list[bool] = []
        running_on: list[int] = []
        for number, way in enumerate(ways):
            inside = guard.with_way(way, settled)
            if way.stops:
                settled.append(self._emit(inside, way.effects, way.line))
            elif way.effects == effects:
                running_on.append(number)
                settled.append(False)
            elif self._adds(way.effects, effects, at):
                self._emit(inside, way.effects, way.line, continues=True)
                running_on.append(number)
                settled.append(False)
            elif way.effects.is_open:
                self._refuse(way.line, "if", way.effects.refused or "")
                settled.append(False)
            else:
                settled.append(self.follow(at, inside._replace(is_inside=True), way.effects))
        others = [number for number in range(len(ways)) if number not in running_on]
        are_settled = all(settled[number] for number in others)
        if not running_on:
            return None, are_settled
        if len(running_on) == 1:
            return guard.with_way(ways[running_on[0]], settled), are_settled
        for number in others:
            guard = guard.without_way(ways[number], settled[number])
        return guard, are_settled

    def _adds(self, after: Effects, before: Effects, at: int) -> bool:
        """Whether the effects of a way only add to those of the rest of the script: then its rule continues."""
        if before != Effects() or not after.only_adds or at >= len(self._commands):
            return False
        changing = set(CHANGING)
        if after.redirects:
            changing.add("redirect")
        if not after.cancelled:  # `discard` takes a copy's original from the inbox; mail that has left it is safe
            changing.add("discard")
        return after.refused is not None or not changing & self._later[at]

    def _ways(self, chain: Sequence[Call], effects: Effects) -> list[_Way]:
        if chain[0].title:
            self._titles.update((call.line, chain[0].title) for call in chain)
        found: list[_Way] = []
        self._branch(chain, ((), 0, None), (), effects, chain[0].line, found)
        return found

    def _branch(
        self,
        chain: Sequence[Call],
        after: _Frame,
        tests: tuple[_Test, ...],
        effects: Effects,
        line: int,
        found: list[_Way],
    ) -> None:
        """Collect the ways through an `if` with its branches, and through the rest of its block."""
        self._visits += 1
        if len(tests) > MOST_TESTS or self._visits > MOST_VISITS:
            raise _TooMany(TOO_MANY_WAYS)
        for number, call in enumerate(chain):
            block = (call.block or (), 0, after)
            if call.name == "else":
                self._explore(block, tests, effects, call.line, found)
                return
            test = self._test(call)
            if test.condition is False:
                self._tell_unreachable([call], "its test is never true")
                continue
            first = len(found)
            self._explore(block, tests if test.condition is True else (*tests, test), effects, call.line, found)
            if test.condition is True:
                self._tell_unreachable(chain[number + 1 :], f"the test on line {call.line} is always true")
                return
            failed = None if test.condition is None else negated(test.condition)
            tests = (*tests, replace(test, condition=failed, passed=range(first, len(found))))
        self._explore(after, tests, effects, line, found)

    def _explore(self, frame: _Frame, tests: tuple[_Test, ...], effects: Effects, line: int, found: list[_Way]) -> None:
        commands, at, parent = frame
        while True:
            if at == len(commands):
                if parent is None:
                    break
                commands, at, parent = parent
                continue
            call = commands[at]
            at += 1
            if call.name == "stop":
                self._add_way(found, _Way(tests, effects, True, line))
                self._tell_unreachable(commands[at:], f"the script stops on line {call.line}")
                return
            if call.name == "if":
                chain = _chain(commands, at - 1)
                self._branch(chain, (commands, at + len(chain) - 1, parent), tests, effects, line, found)
                return
            effects = effects.after(_alone(call), self._extensions, line)
        self._add_way(found, _Way(tests, effects, False, line))

    def _add_way(self, ways: list[_Way], way: _Way) -> None:
        ways.append(way)
        if len(ways) > MOST_WAYS:
            raise _TooMany(TOO_MANY_WAYS)

    def _test(self, call: Call) -> _Test:
        if len(call.tests) != 1 or call.arguments or call.block is None:
            raise BadInput(f"line {call.line}", f"{call.name} does not have one test and a block", "fix that line")
        if (known := self._tests.get(id(call))) is not None:
            return known
        try:
            found = _Test(call.line, condition_of(call.tests[0], self._extensions))
        except Inexpressible as error:
            found = _Test(call.line, None, str(error))
        self._tests[id(call)] = found
        return found

    def _emit(self, guard: _Guard, effects: Effects, line: int, *, continues: bool = False, ends: bool = False) -> bool:
        """Import a way as a rule. Returns whether all its mail is now decided."""
        lines = effects.lines or (line,)
        is_idle = effects == Effects()
        if ends and is_idle and not guard.tests:
            return True
        if (unknown := guard.unknown) is not None:
            if not is_idle or unknown.line == line:
                self._refuse(lines[-1], self._title(lines), _why_unknown(unknown, lines[-1]))
            return False
        condition = guard.condition
        if condition is False:
            return True
        try:
            steps, notes = effects.outcome()
        except Inexpressible as error:
            self._refuse(lines[-1], self._title(lines), str(error))
            return False
        if len(self.imported.drafts) >= MOST_RULES:
            raise _TooMany(TOO_MANY_RULES)
        return self._add(lines, condition, SieveOutcome(steps, notes), continues=continues, is_idle=is_idle)

    def _add(
        self, lines: tuple[int, ...], condition: Logic, outcome: SieveOutcome, *, continues: bool, is_idle: bool
    ) -> bool:
        where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
        name = self._title(lines) or f"Sieve {where}: {_steps_text(outcome.steps)}"
        added = self.imported.add(where, name, condition, outcome.steps, continues=continues, notes=outcome.notes)
        if added and is_idle:
            self._idle.add(self.imported.drafts[-1].name)
        return added

    def drop_last_idle_rules(self) -> None:
        """Remove rules at the end that only keep mail from rules after them."""
        drafts = self.imported.drafts
        while drafts and drafts[-1].name in self._idle:
            name = drafts.pop().name
            del self.imported.places[name], self.imported.notes[name]

    def _title(self, lines: Iterable[int]) -> str:
        return " + ".join(dict.fromkeys(title for line in lines if (title := self._titles.get(line))))

    def _refuse(self, line: int, what: str, why: str) -> None:
        self.imported.refuse(f"line {line}", what or "if", why)

    def _tell_unreachable(self, calls: Sequence[Call], why: str) -> None:
        for call in calls[:1]:
            if call.name != "stop":
                self.imported.never(f"line {call.line}", call.name, why)


def _chain(commands: Sequence[Call], at: int) -> list[Call]:
    """An `if` with its `elsif` and `else`."""
    found = [commands[at]]
    while at + len(found) < len(commands) and (call := commands[at + len(found)]).name in ("elsif", "else"):
        if found[-1].name == "else":
            raise BadInput(f"line {call.line}", f"{call.name} comes after else", "fix that line")
        if call.name == "else" and (call.tests or call.arguments or call.block is None):
            raise BadInput(f"line {call.line}", "else has a test, or no block", "fix that line")
        found.append(call)
    return found


def _alone(call: Call) -> Call:
    if call.name in BRANCHES:
        raise BadInput(f"line {call.line}", f"{call.name} has no if before it", "fix that line")
    return call


def _required_extensions(commands: Sequence[Call]) -> Iterable[str]:
    for call in commands:
        if call.name == "require":
            for argument in call.arguments:
                if isinstance(argument, Tag | int):
                    raise BadInput(f"line {call.line}", "require does not name extensions", "fix that line")
                yield from (name.lower() for name in argument)


def _why_unknown(test: _Test, line: int) -> str:
    return test.why if test.line == line else f"it depends on line {test.line}, which is refused: {test.why}"


def _steps_text(steps: Sequence[Step]) -> str:
    return shown(*combined(steps)) if steps else "keep"
