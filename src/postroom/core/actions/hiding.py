"""Hiding: the actions that take mail out of sight, and how much of it automation may do by itself.

    always       archive, trash, mark_read
    if_long      snooze: for more than a week, or the second by automation: a week again and again is a year
    if_folder    apply_label, by which the message leaves the inbox for the folder, and remove_label, by which it leaves
                 the folder for the archive
    never        the others; delete is judged as irreversible

What a model or an agent hides without a person's approval is counted for good: a retry, a failure or an undo gives
nothing back. A person's own actions and rules are not counted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never

from postroom.core.actions.snooze import wake_time
from postroom.core.actions.steps import Step, steps_of
from postroom.core.counted import counted
from postroom.core.errors import BadInput

HOUR = timedelta(hours=1)
LONGEST_IN_SIGHT = timedelta(days=7)
"""Mail that is snoozed for longer counts as hidden."""


class HidingLimits(NamedTuple):
    """How many messages of an account automation may hide by itself: of one sender in a day, in an hour, in a day."""

    of_sender: int = 5
    an_hour: int = 30
    a_day: int = 200


class HidingCaps(NamedTuple):
    """The limits, and when the owner's day began."""

    limits: HidingLimits
    day_began: datetime


@dataclass(frozen=True, slots=True)
class HiddenSoFar:
    """How much automation has hidden in an account: of one sender today, within the hour, and today."""

    of_sender: int
    this_hour: int
    today: int


def hides(action_type: str, parameters: Mapping[str, Any], folders: Collection[str], now: datetime | None) -> bool:
    """Whether the action takes a message out of sight. `folders` are the labels that are folders, by id and by
    casefolded name. If the time is not known, every snooze is a long one.
    """
    return any(_step_hides(step, folders, now) for step in steps_of(action_type, parameters))


def _step_hides(step: Step, folders: Collection[str], now: datetime | None) -> bool:
    match step.spec.hides:
        case "always":
            return True
        case "never":
            return False
        case "if_long":
            return now is None or _is_long(step.parameters, now)
        case "if_folder":
            label = str(step.parameters.get("label", "")).strip()
            return label in folders or label.casefold() in folders
        case _:
            assert_never(step.spec.hides)


def _is_long(parameters: Mapping[str, Any], now: datetime) -> bool:
    try:
        return wake_time(parameters, now) > now + LONGEST_IN_SIGHT
    except BadInput:
        return False  # it is in the past, or no time at all: it will not be done


def cap_reached(hidden: HiddenSoFar, limits: HidingLimits) -> str | None:
    """Why nothing more of this sender is hidden now; None if one more may be."""
    if hidden.of_sender >= limits.of_sender:
        return f"the limit of {counted(limits.of_sender, 'hidden message')} of one sender a day is reached"
    if hidden.this_hour >= limits.an_hour:
        return f"the limit of {counted(limits.an_hour, 'hidden message')} an hour is reached"
    if hidden.today >= limits.a_day:
        return f"the limit of {counted(limits.a_day, 'hidden message')} a day is reached"
    return None
