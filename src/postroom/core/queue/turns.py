"""What each pick did to the streaks, so that one that nobody got can be taken back.

A pick makes some counters grow and sets others to zero. Between a lease and its return other picks are made, so the
old values cannot simply be put back. Each pick therefore has a number and keeps, with the message it leased, which
counters grew and which it broke: how far they had come, and which pick had broken them before. A ledger keeps which
pick broke each counter last. Taking back a pick is then exact, as if it had never been made:

    it broke a counter    what the counter had is added to whatever came after; when another pick has broken the
                          counter since, it belongs to that one's memory of it
    a counter grew        one less, in the counter, or in the memory of the pick that broke it since

When that other pick has ended for good, its memory is gone and nothing has to be changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from postroom.core.queue.picker import Pick, after_pick, effect_of
from postroom.core.queue.queues import Policy


class Broken(NamedTuple):
    """How far a counter had come when a pick broke it, and the number of the pick that had broken it before."""

    reached: int
    before: int


class Turn(NamedTuple):
    """One pick: its number, which counters grew, and which it broke."""

    number: int
    grew: tuple[str, ...]
    broke: Mapping[str, Broken]

    @property
    def form(self) -> dict[str, Any]:
        """As it is kept with the message; `turn_of` reads it."""
        return {"number": self.number, "grew": self.grew, "broke": {name: [*each] for name, each in self.broke.items()}}


def turn_of(form: Mapping[str, Any]) -> Turn:
    broke = {name: Broken(*each) for name, each in form["broke"].items()}
    return Turn(form["number"], tuple(form["grew"]), broke)


class Ledger(NamedTuple):
    """The counters of a queue, the number of its last pick, and the last pick that broke each counter."""

    streaks: Mapping[str, int]
    picked: int = 0
    broken_by: Mapping[str, int] = {}


def record_picks(policy: Policy, ledger: Ledger, picks: Iterable[Pick]) -> tuple[Ledger, list[Turn]]:
    """The ledger after these picks, and what each of them did."""
    streaks, number, broken_by = ledger.streaks, ledger.picked, dict(ledger.broken_by)
    turns: list[Turn] = []
    for picked in picks:
        number += 1
        grows, breaks = effect_of(policy, picked)
        broke = {name: Broken(streaks.get(name, 0), broken_by.get(name, 0)) for name in breaks}
        turns.append(Turn(number, grows, broke))
        broken_by |= dict.fromkeys(breaks, number)
        streaks = after_pick(policy, streaks, picked)
    return Ledger(streaks, number, broken_by), turns


def undo_picks(ledger: Ledger, returned: Sequence[Turn], held: Sequence[Turn]) -> tuple[Ledger, list[Turn]]:
    """The ledger as if the returned had never been picked, and those of the held whose memory has changed."""
    streaks, broken_by = dict(ledger.streaks), dict(ledger.broken_by)
    memory = {turn.number: dict(turn.broke) for turn in held}
    for turn in sorted(returned, key=lambda each: each.number, reverse=True):
        for name, lost in turn.broke.items():
            if broken_by.get(name, 0) == turn.number:
                streaks[name] = streaks.get(name, 0) + lost.reached
                broken_by[name] = lost.before
            elif (later := _next_to_break(name, turn.number, memory)) is not None:
                later[name] = Broken(later[name].reached + lost.reached, lost.before)
        for name in turn.grew:
            if broken_by.get(name, 0) < turn.number:
                streaks[name] = max(0, streaks.get(name, 0) - 1)
            elif (later := _next_to_break(name, turn.number, memory)) is not None:
                later[name] = later[name]._replace(reached=later[name].reached - 1)
    changed = [turn._replace(broke=memory[turn.number]) for turn in held if memory[turn.number] != turn.broke]
    return Ledger(streaks, ledger.picked, broken_by), changed


def _next_to_break(name: str, number: int, memory: Mapping[int, dict[str, Broken]]) -> dict[str, Broken] | None:
    """The memory of the pick that was the first to break the counter after this one; None when that one has ended."""
    found = (broke for later, broke in memory.items() if later > number and name in broke)
    return next((broke for broke in found if broke[name].before <= number), None)
