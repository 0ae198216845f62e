"""The state of an action in few words: the same on every page, in the commands and in the API."""

from collections.abc import Mapping
from typing import Literal

from postroom.core.lifecycle import ActionState

Mood = Literal["", "good", "bad", "ask", "busy"]
_WORDS: Mapping[ActionState, tuple[str, Mood]] = {
    "queued": ("in line", "busy"),
    "approved_pending": ("needs approval", "ask"),
    "executing": ("in progress", "busy"),
    "completed": ("done", "good"),
    "failed": ("failed", "bad"),
    "canceled": ("canceled", ""),
    "rejected": ("rejected", ""),
    "expired": ("expired, not done", ""),
}


def state_of(state: ActionState, undone: ActionState | None = None) -> tuple[str, Mood]:
    """Return the state of an action and its mood. `undone` is the state of its undo: an undone action is never done."""
    match undone:
        case "completed":
            return "undone", ""
        case "queued" | "executing" | "approved_pending":
            return "being undone", "busy"
        case None:
            return _WORDS[state]
        case _:
            return f"{_WORDS[state][0]}; could not be undone", "bad"
