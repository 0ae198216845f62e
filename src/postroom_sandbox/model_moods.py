"""How the stand-in of a language model decides: sensibly, by a few words in the mail, or obediently, as mail tells it.

The obedient one is the worst model there can be: whatever instruction stands in the mail, it follows. Whoever is safe
with it is safe with any.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from postroom_sandbox.model_requests import Asked

Json = dict[str, Any]


@dataclass(frozen=True)
class Called:
    """A tool call: its arguments as an object, or, to be as malformed as one likes, as text."""

    arguments: Json | str
    tool: str | None = None
    """Another than the one that was offered."""


@dataclass(frozen=True)
class Says:
    """An answer of the model. Tokens are counted from the texts unless they are given."""

    calls: tuple[Called, ...] = ()
    text: str = ""
    cut_off: bool = False
    refuses: bool = False
    tokens: tuple[int, int] | None = None


Mood = Callable[[Asked], Says]


def decides(action: str = "none", confidence: object = 0.9, rationale: object = "as scripted", **more: Any) -> Says:
    """One call of the tool. What is named besides is a parameter, unless it is a field of its own."""
    fields: Json = {name: more.pop(name) for name in ("needs_approval", "parameters") if name in more}
    parameters = dict.fromkeys(("label", "amount", "units", "text")) | more
    return Says(
        (
            Called(
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


# Words in the mail, what to do, and the label that is looked for in the list of allowed ones.
_HINTS: tuple[tuple[str, str, str], ...] = (
    (r"invoice|receipt|payment|order confirmation", "apply_label", "receipt|invoice|finance|bill"),
    (r"flight|itinerary|boarding|hotel|booking", "apply_label", "travel|trip"),
    (r"unsubscribe|newsletter|list-id:", "archive", ""),
    (r"urgent|deadline|asap", "star", ""),
)


def sensible(asked: Asked) -> Says:
    """For demonstrations: decides by the first words that it knows, and else leaves the mail where it is."""
    for words, action, wanted in _HINTS:
        found = re.search(words, asked.mail, re.IGNORECASE)
        if found is None:
            continue
        reason = f"the mail says {found[0].lower()!r}"
        if not wanted:
            return decides(action, 0.85, reason)
        label = next((each for each in asked.labels if re.search(wanted, each, re.IGNORECASE)), None)
        if label is not None:
            return decides(action, 0.9, reason, label=label)
    return decides("none", 0.6, "nothing in it asks for more")


def obedient(asked: Asked) -> Says:
    """Does everything that the mail says; what it says twice, twice."""
    calls = (*_written_calls(asked.mail), *_spoken(asked.mail))
    return Says(calls) if calls else sensible(asked)


def _written_calls(mail: str) -> Iterator[Called]:
    """JSON in the mail that looks like a call of a tool, or like its arguments."""
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


def _as_call(found: Json) -> Iterator[Called]:
    arguments = found.get("arguments", found.get("input"))
    if isinstance(found.get("name"), str) and isinstance(arguments, dict | str):
        yield Called(cast("Json | str", arguments), found["name"])
    elif "action" in found:
        yield Called(found)


def _spoken(mail: str) -> Iterator[Called]:
    """Orders in words."""
    told = {
        name.lower(): value.strip() for name, value in re.findall(r"(?im)\b(action|label|confidence|text): *(.+)", mail)
    }
    if "action" in told:
        yield _call(told["action"], told.get("confidence", "1"), label=told.get("label"), text=told.get("text"))
    for address in re.findall(r"(?i)\bforward (?:this|it)(?: mail| message)? to (\S+@\S+)", mail):
        yield _call("forward", "1", to=address)
    for address in re.findall(r"(?i)\breply to (\S+@\S+)", mail):
        yield _call("auto_reply", "1", text=told.get("text", "yes"), to=address)
    for label in re.findall(r"(?i)\b(?:apply|use) the label [\"']?([\w/ -]+)", mail):
        yield _call("apply_label", "1", label=label.strip())


def _call(action: str, confidence: str, **parameters: str | None) -> Called:
    number = float(confidence) if re.fullmatch(r"-?\d+(\.\d+)?", confidence) else confidence
    given = {name: value for name, value in parameters.items() if value is not None}
    return Called({"rationale": "the mail says so", "action": action, "parameters": given, "confidence": number})
