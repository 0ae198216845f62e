"""The decision of a language model about a message: the schema of its answer, and the parsing of one.

The model is asked to call one tool, `record_decision`. Its answer is checked here field by field, since the mail that
it is about may have dictated it. So there is no field for a recipient (a forward is not offered at all, and the model
cannot choose whom an automatic reply goes to), labels come from a fixed list, and an error names the field and the
allowed values but never quotes the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from postroom.core.actions.action import SPECS, ActionType, DecidedType, check_parameters
from postroom.core.actions.steps import MOST_STEPS, Step, check_steps, combined
from postroom.core.errors import BadInput, BadModelAnswer
from postroom.core.mail.message import storable

TOOL = "record_decision"
TOOL_DESCRIPTION = "Record what is to be done with the mail. Call it exactly once."
OFFERED = {name: spec for name, spec in SPECS.items() if spec.is_offered_to_model}
MODEL_ACTIONS = ("none", *OFFERED)
LABELLING = frozenset[str](name for name, spec in OFFERED.items() if spec.names_label)
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    name: offered
    for name, spec in OFFERED.items()
    if (offered := tuple(each for each, parameter in spec.parameters.items() if parameter.for_model is not None))
}
LONGEST_RATIONALE = 1_000
LONGEST_REPLY = 4_000
MOST_ALTERNATIVES = 3
_MOST_READ = 10

_FIELDS = frozenset({"action", "parameters", "also", "confidence", "needs_approval", "rationale", "alternatives"})
_PARAMETER_NAMES = tuple(dict.fromkeys(name for names in PARAMETERS.values() for name in names))


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """A model's checked decision. Whether it may be carried out is decided in core/actions/safety.py."""

    action_type: DecidedType
    parameters: Mapping[str, Any]
    confidence: float
    rationale: str
    needs_approval: bool = False
    alternatives: tuple["Alternative", ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """An action that the model weighed and did not choose. It is only shown, and never carried out."""

    action_type: DecidedType
    label: str | None
    confidence: float

    def as_json(self) -> dict[str, Any]:
        named = {} if self.label is None else {"label": self.label}
        return {"action": self.action_type, "parameters": named, "confidence": self.confidence}


def offered_actions(allowed_labels: Sequence[str]) -> tuple[str, ...]:
    """The actions that the model may choose. Without labels to choose from, none that needs one."""
    return tuple(action for action in MODEL_ACTIONS if allowed_labels or action not in LABELLING)


def decision_schema(allowed_labels: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of the answer. Strict modes of providers want every field to be required and nullable."""
    parameters = {name: _parameter_schema(name) for name in _PARAMETER_NAMES if name != "label"}
    if allowed_labels:
        label = _parameter_schema("label")
        parameters["label"] = {"type": label["type"], "enum": [*allowed_labels, None]} | label
    actions = list(offered_actions(allowed_labels))
    fields: dict[str, Any] = {
        "rationale": {"type": "string", "description": "Why, in one or two sentences"},
        "action": {"type": "string", "enum": actions, "description": "What to do; none leaves the mail where it is"},
        "parameters": {**_closed_object(parameters), "description": "What the action needs; null for everything else"},
        "also": {
            "type": ["array", "null"],
            "items": _closed_object(
                {"action": {"type": "string", "enum": actions[1:]}, "parameters": _closed_object(parameters)}
            ),
            "description": "Further actions on the same mail, in order; one that sends or deletes comes last",
        },
        "confidence": {"type": "number", "description": "How sure you are, from 0 to 1"},
        "needs_approval": {"type": "boolean", "description": "Whether a person should look at it first"},
        "alternatives": {
            "type": ["array", "null"],
            "items": _closed_object({"action": {"type": "string"}, "confidence": {"type": "number"}}),
            "description": f"Up to {MOST_ALTERNATIVES} other actions you weighed, a label after its action; or null",
        },
    }
    return _closed_object(fields)


def _parameter_schema(name: str) -> dict[str, Any]:
    """The schema of a parameter, whose description names the actions that take it."""
    takers = [action for action in OFFERED if name in PARAMETERS.get(action, ())]
    schema = OFFERED[takers[0]].parameters[name].for_model or {}
    return {**schema, "description": f"{' and '.join(takers)}: {schema['description']}"}


def _closed_object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def read_decision(arguments: object, allowed_labels: Sequence[str]) -> ModelDecision:
    """Parse the arguments of the tool call. Raises BadModelAnswer with the reason."""
    if not isinstance(arguments, Mapping):
        raise BadModelAnswer("the arguments are not an object")
    given = cast("Mapping[object, object]", arguments)
    _only(given, _FIELDS, "the answer")
    action = given.get("action")
    offered = offered_actions(allowed_labels)
    if not isinstance(action, str) or action not in offered:
        raise BadModelAnswer(f"action: is not one of {', '.join(offered)}")
    action_type, parameters = _with_others(
        action, _parameters(action, given.get("parameters"), allowed_labels), given.get("also"), allowed_labels
    )
    return ModelDecision(
        action_type,
        parameters,
        _confidence(given.get("confidence")),
        _rationale(given.get("rationale")),
        _yes_or_no(given.get("needs_approval")),
        _alternatives(given.get("alternatives"), (action, parameters.get("label")), allowed_labels),
    )


def _alternatives(given: object, chosen: tuple[str, object], allowed_labels: Sequence[str]) -> tuple[Alternative, ...]:
    """The valid ones of the first few, likeliest first. Others are dropped: a second answer would cost more than they
    are worth.
    """
    if not isinstance(given, list):
        return ()
    found: dict[tuple[str, object], Alternative] = {}
    for each in islice(cast("list[object]", given), _MOST_READ):
        fields = cast("Mapping[str, object]", each) if isinstance(each, Mapping) else dict[str, object]()
        words, confidence = fields.get("action"), fields.get("confidence")
        if not isinstance(words, str) or isinstance(confidence, bool) or not isinstance(confidence, int | float):
            continue
        name, _, rest = words.strip().partition(" ")
        label = rest.strip() if name in LABELLING else None
        known = name in offered_actions(allowed_labels) and (label is None or label in allowed_labels)
        if known and 0 <= confidence <= 1 and (name, label) != chosen:
            found.setdefault((name, label), Alternative(cast("DecidedType", name), label, float(confidence)))
    return tuple(sorted(found.values(), key=lambda each: -each.confidence)[:MOST_ALTERNATIVES])


def _with_others(
    action: str, parameters: dict[str, Any], also: object, allowed_labels: Sequence[str]
) -> tuple[DecidedType, dict[str, Any]]:
    """The action and those in `also` as one."""
    if also is None or also == []:
        return cast("DecidedType", action), parameters
    if action == "none":
        raise BadModelAnswer("also: is given, although the action is none")
    if not isinstance(also, list) or len(cast("list[object]", also)) >= MOST_STEPS:
        raise BadModelAnswer(f"also: is not a list of fewer than {MOST_STEPS} actions")
    steps = [Step(cast("ActionType", action), parameters)]
    for each in cast("list[object]", also):
        if not isinstance(each, Mapping):
            raise BadModelAnswer("also: is not a list of actions with their parameters")
        given = cast("Mapping[object, object]", each)
        _only(given, frozenset({"action", "parameters"}), "also")
        name, offered = given.get("action"), offered_actions(allowed_labels)[1:]
        if not isinstance(name, str) or name not in offered:
            raise BadModelAnswer(f"also: has an action that is not one of {', '.join(offered)}")
        steps.append(Step(cast("ActionType", name), _parameters(name, given.get("parameters"), allowed_labels)))
    try:
        check_steps(steps)
    except BadInput as error:
        raise BadModelAnswer(f"also: {error.problem}") from None
    return combined(steps)


def _only(given: Mapping[object, object], known: frozenset[str], where: str) -> None:
    if any(name not in known for name in given):
        raise BadModelAnswer(f"{where} has fields that do not exist; there are {', '.join(sorted(known))}")


def _parameters(action: str, given: object, allowed_labels: Sequence[str]) -> dict[str, Any]:
    """The action's own parameters. Those of other actions are dropped; unknown ones are refused."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise BadModelAnswer("parameters: are not an object")
    values = cast("Mapping[object, object]", given)
    _only(values, frozenset(_PARAMETER_NAMES), "parameters")
    wanted = {name: values.get(name) for name in PARAMETERS.get(action, ())}
    if "label" in wanted and (not isinstance(wanted["label"], str) or wanted["label"] not in allowed_labels):
        raise BadModelAnswer("parameters.label: is not one of the allowed labels")
    if "text" in wanted:
        wanted["text"] = _reply(wanted["text"])
    if wanted:
        _check(action, wanted)
    return wanted


def _check(action: str, wanted: Mapping[str, Any]) -> None:
    try:
        check_parameters(action, wanted)
    except BadInput as error:
        raise BadModelAnswer(f"{error.field}: {error.remedy}") from None


def _reply(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise BadModelAnswer("parameters.text: is missing or empty; say what is to be answered")
    if len(text) > LONGEST_REPLY:
        raise BadModelAnswer(f"parameters.text: has more than {LONGEST_REPLY} characters")
    return storable(text)


def _confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadModelAnswer("confidence: is not a number; use one from 0 to 1")
    if not 0 <= given <= 1:  # also catches NaN
        raise BadModelAnswer("confidence: is not from 0 to 1")
    return float(given)


def _rationale(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise BadModelAnswer("rationale: is missing or empty; say why in a sentence")
    return storable(" ".join(given[: 2 * LONGEST_RATIONALE].split()))[:LONGEST_RATIONALE]


def _yes_or_no(given: object) -> bool:
    """A missing value means no: many small models leave it out, and the safety rules do not rely on it."""
    if given is None:
        return False
    if not isinstance(given, bool):
        raise BadModelAnswer("needs_approval: is neither true nor false")
    return given
