"""States in few words, each with its mood: the same on every page, in the commands and in the API."""

from collections.abc import Mapping
from typing import Literal

from postroom.core.lifecycle import ActionState

Mood = Literal["", "good", "bad", "ask", "busy"]
_ACTION_STATES: Mapping[ActionState, tuple[str, Mood]] = {
    "queued": ("in line", "busy"),
    "approved_pending": ("needs approval", "ask"),
    "executing": ("in progress", "busy"),
    "completed": ("done", "good"),
    "failed": ("failed", "bad"),
    "canceled": ("canceled", ""),
    "rejected": ("rejected", ""),
    "expired": ("expired, not done", ""),
}
EVENT_STATES: Mapping[str, tuple[str, Mood]] = {
    "waiting": ("waiting", "busy"),
    "leased": ("being processed", "busy"),
    "done": ("processed", "good"),
    "failed": ("failed", "bad"),
    "coalesced": ("part of a summary", ""),
    "auto_acked": ("expired unread", ""),
    "duplicate": ("duplicate", ""),
}
ENDED_EVENTS: Mapping[str, str] = {"summaries": "Coalesced", "auto_acked": "Auto-acked", "failed": "Failed"}


def state_of(state: ActionState, undone: ActionState | None = None) -> tuple[str, Mood]:
    """Return the state of an action and its mood. `undone` is the state of its undo: an undone action is never done."""
    match undone:
        case "completed":
            return "undone", ""
        case "queued" | "executing" | "approved_pending":
            return "being undone", "busy"
        case None:
            return _ACTION_STATES[state]
        case _:
            return f"{_ACTION_STATES[state][0]}; could not be undone", "bad"
