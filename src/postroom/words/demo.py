"""The things to try in the demo, in words."""

from typing import Literal, NamedTuple

ThingName = Literal["read", "answer", "undo", "rule", "pause"]


class Thing(NamedTuple):
    """One thing to try: what to do, how, and the page on which it begins."""

    name: ThingName
    title: str
    how: str
    address: str


THINGS = (
    Thing("read", "Open a message and see why it was filed", "Its page shows each step, from arrival to now.", "/mail"),
    Thing(
        "answer",
        "Approve or reject what the agent asks for",
        "An agent wants to archive a message. It waits for you.",
        "/approvals",
    ),
    Thing("undo", "Undo something", "Open a message that was archived, and choose Undo.", "/mail?state=done"),
    Thing(
        "rule",
        "Make a rule from a message",
        "Open a message and choose Make a rule. You see what it would have done before you save it.",
        "/mail?by=model",
    ),
    Thing("pause", "Pause everything, then resume", "The button is at the top of this page.", "/"),
)
