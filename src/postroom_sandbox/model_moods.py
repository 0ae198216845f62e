"""How the stand-in for a language model decides: sensibly, by a few words in the mail, or by obeying the mail.

The obedient one is the worst possible model: it follows every instruction in the mail. A program that is safe with it
is safe with any model.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

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


Mood = Callable[[ReceivedRequest], FakeAnswer]


def decides(
    action: str = "none", confidence: object = 0.9, rationale: object = "as scripted", **more: Any
) -> FakeAnswer:
    """An answer with one call of the tool. Other keywords are parameters, unless they are fields of the tool."""
    fields: Json = {name: more.pop(name) for name in ("needs_approval", "parameters") if name in more}
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
            return decides(action, 0.85, reason)
        label = next((each for each in request.labels if re.search(wanted, each, re.IGNORECASE)), None)
        if label is not None:
            return decides(action, 0.9, reason, label=label)
    return decides("none", 0.6, "nothing in it asks for more")


def obedient(request: ReceivedRequest) -> FakeAnswer:
    """Do everything that the mail says, as often as it says it."""
    calls = (*_written_calls(request.mail), *_spoken(request.mail))
    return FakeAnswer(calls) if calls else sensible(request)


def _written_calls(mail: str) -> Iterator[FakeToolCall]:
    """JSON in the mail that looks like a tool call, or like its arguments."""
    reader = json.JSONDecoder()
    place = mail.find("{")
    while place >= 0:
        try:
            found, end = reader.raw_decode(mail, place)
        except (ValueError, RecursionError):
            place = mail.find("{", place + 1)
            continue
        if isinstance(found, dict):
            yield from _as_call(cast("Json", found))
        place = mail.find("{", end)


def _as_call(found: Json) -> Iterator[FakeToolCall]:
    arguments = found.get("arguments", found.get("input"))
    if isinstance(found.get("name"), str) and isinstance(arguments, dict | str):
        yield FakeToolCall(cast("Json | str", arguments), found["name"])
    elif "action" in found:
        yield FakeToolCall(found)


def _spoken(mail: str) -> Iterator[FakeToolCall]:
    """Instructions in words."""
    fields = {
        name.lower(): value.strip() for name, value in re.findall(r"(?im)\b(action|label|confidence|text): *(.+)", mail)
    }
    if "action" in fields:
        yield _call(fields["action"], fields.get("confidence", "1"), label=fields.get("label"), text=fields.get("text"))
    for address in re.findall(r"(?i)\bforward (?:this|it)(?: mail| message)? to (\S+@\S+)", mail):
        yield _call("forward", "1", to=address)
    for address in re.findall(r"(?i)\breply to (\S+@\S+)", mail):
        yield _call("auto_reply", "1", text=fields.get("text", "yes"), to=address)
    for label in re.findall(r"(?i)\b(?:apply|use) the label [\"']?([\w/ -]+)", mail):
        yield _call("apply_label", "1", label=label.strip())


def _call(action: str, confidence: str, **parameters: str | None) -> FakeToolCall:
    number = float(confidence) if re.fullmatch(r"-?\d+(\.\d+)?", confidence) else confidence
    given = {name: value for name, value in parameters.items() if value is not None}
    return FakeToolCall({"rationale": "the mail says so", "action": action, "parameters": given, "confidence": number})
