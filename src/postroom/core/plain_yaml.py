"""YAML from outside, read within limits: texts, numbers, true and false in lists and mappings, and nothing else.

Anchors, aliases and tags are refused: they can make a small file expand without end or refer to itself. So are lists
and mappings as keys, which no Python mapping can hold.
"""

from collections.abc import Iterator
from typing import Any

from postroom.core.errors import BadInput
from postroom.core.strict import shown_name

DEEPEST = 50


def read_yaml(text: str, subject: str) -> Any:
    """The document. Raises BadInput, which names the line, or `subject` for the whole."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        _check_events(yaml.parse(text))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise BadInput(subject, f"are not valid YAML ({_place_of(error)})", "fix that line") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(subject, f"are not valid YAML ({type(error).__name__})", "fix it") from None


def _check_events(events: Iterator[Any]) -> None:
    """Check the document before anything is built. `inside` has one entry for each open list or mapping: for a mapping,
    whether a key is next; for a list None.
    """
    inside: list[bool | None] = []
    for event in events:
        line = f"line {event.start_mark.line + 1}"
        kind = type(event).__name__
        if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
            raise BadInput(line, "uses an anchor or alias", "write it out; references are not allowed")
        if getattr(event, "tag", None) is not None:
            raise BadInput(line, "uses a tag", "leave it out; use texts, numbers, true and false")
        begins = kind in ("MappingStartEvent", "SequenceStartEvent")
        if begins and inside and inside[-1]:
            raise BadInput(line, "has a list or a mapping as a key", "use a text")
        if (begins or kind == "ScalarEvent") and inside and inside[-1] is not None:
            inside[-1] = not inside[-1]
        if begins:
            inside.append(True if kind == "MappingStartEvent" else None)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            inside.pop()
        if len(inside) > DEEPEST:
            raise BadInput(line, "is nested too deep", "flatten it")


def _place_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = shown_name(str(getattr(error, "problem", None) or type(error).__name__))
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
