"""The worst possible model, which follows every instruction in the mail: what is safe with it is safe with any."""

import json
import re
from collections.abc import Iterator
from typing import cast

from postroom_sandbox.model_moods import FakeAnswer, FakeToolCall, Json, sensible
from postroom_sandbox.model_requests import ReceivedRequest


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
