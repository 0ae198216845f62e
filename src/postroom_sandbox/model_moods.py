"""How the stand-in for a language model decides: sensibly, by a few words in the mail."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from postroom_sandbox.model_requests import ReceivedRequest

Json = dict[str, Any]


@dataclass(frozen=True)
class FakeToolCall:
    """A tool call: its arguments as an object, or as text, which may be malformed."""

    arguments: Json | str
    tool: str | None = None
    """A tool other than the offered one."""


@dataclass(frozen=True)
class FakeAnswer:
    """An answer of the model. Tokens are counted from the texts unless given."""

    calls: tuple[FakeToolCall, ...] = ()
    text: str = ""
    cut_off: bool = False
    refuses: bool = False
    tokens: tuple[int, int] | None = None
    has_usage: bool = True
    """False for a server that says nothing of tokens."""


Mood = Callable[[ReceivedRequest], FakeAnswer]


def decides(
    action: str = "none", confidence: object = 0.9, rationale: object = "as scripted", **more: Any
) -> FakeAnswer:
    """An answer with one call of the tool. Other keywords are parameters, unless they are fields of the tool."""
    fields: Json = {name: more.pop(name) for name in ("needs_approval", "parameters", "alternatives") if name in more}
    parameters = dict.fromkeys(("label", "amount", "units", "text")) | more
    return FakeAnswer(
        (
            FakeToolCall(
                {
                    "rationale": rationale,
                    "action": action,
                    "parameters": parameters,
                    "confidence": confidence,
                    "needs_approval": False,
                    **fields,
                }
            ),
        )
    )


# Words in the mail, the action, and a pattern for the label among the allowed ones.
_HINTS: tuple[tuple[str, str, str], ...] = (
    (r"invoice|receipt|payment|order confirmation", "apply_label", "receipt|invoice|finance|bill"),
    (r"flight|itinerary|boarding|hotel|booking", "apply_label", "travel|trip"),
    (r"unsubscribe|newsletter|list-id:", "archive", ""),
    (r"urgent|deadline|asap", "star", ""),
)


def sensible(request: ReceivedRequest) -> FakeAnswer:
    """For demos: decide by the first known words; otherwise leave the mail where it is."""
    for words, action, wanted in _HINTS:
        found = re.search(words, request.mail, re.IGNORECASE)
        if found is None:
            continue
        reason = f"the mail says {found[0].lower()!r}"
        if not wanted:
            return decides(action, 0.85, reason, alternatives=[{"action": "none", "confidence": 0.1}])
        label = next((each for each in request.labels if re.search(wanted, each, re.IGNORECASE)), None)
        if label is not None:
            others = [{"action": "archive", "confidence": 0.07}, {"action": "none", "confidence": 0.03}]
            return decides(action, 0.9, reason, label=label, alternatives=others)
    others = [{"action": "archive", "confidence": 0.3}, {"action": "star", "confidence": 0.1}]
    return decides("none", 0.6, "nothing in it asks for more", alternatives=others)
