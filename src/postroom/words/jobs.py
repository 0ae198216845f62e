"""Words for jobs: their states, what happened to them, and what people do with many of them."""

from collections.abc import Mapping

from postroom.words.states import Mood

MOODS: Mapping[str, Mood] = {
    "running": "busy",
    "retrying": "ask",
    "parked": "ask",
    "failed": "bad",
    "completed": "good",
}
CONSEQUENCES: Mapping[str, str] = {
    "retry": "They are queued again at once, with all their attempts. What they did before is not done twice.",
    "cancel": "Those that wait never run; those that run stop at their next step. They can be retried later.",
    "dismiss": "They count as canceled, so no one is asked about them again. They can still be retried.",
}
BUSY: Mapping[str, str] = {"retry": "Queueing again", "cancel": "Canceling", "dismiss": "Dismissing"}
PAST: Mapping[str, str] = {"retry": "queued again", "cancel": "canceled", "dismiss": "dismissed"}
EVENTS: Mapping[str, tuple[str, Mood]] = {
    "retried": ("A person asked to try it again", "ask"),
    "rescued": ("Its worker died, and another took it over", "ask"),
    "dismissed": ("A person dismissed it", ""),
}
WAITING_WORK: Mapping[str, str] = {"undo.action": "undo", "unsnooze.gmail": "waking of snoozed mail"}
