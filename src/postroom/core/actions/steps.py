"""Several actions on one message, in order, as one: decided, approved, carried out and undone together.

    actions: [apply_label Receipts, archive, mark_read]

A decision and an action have one type and one set of parameters. For several actions the type is `several`, and the
parameters are the list of them, so that one row has one hash, one approval, one pre-image and one undo. A part of it is
a step. At most one step sends or deletes, and it is the last: steps that can be undone come before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from postroom.core.actions.action import (
    ACTION_TYPES,
    IRREVERSIBLE,
    SENDING,
    SPECS,
    ActionSpec,
    ActionType,
    DecidedType,
    check_parameters,
    known_action,
)
from postroom.core.actions.parameters import recipients_of
from postroom.core.errors import BadInput, Fatal
from postroom.core.strict import shown_name
from postroom.core.suggestions import did_you_mean

MOST_STEPS = 10
_FORM = "write [apply_label Receipts, archive, {forward: {to: ada@example.com}}]"


@dataclass(frozen=True, slots=True)
class Step:
    """One action among several."""

    action_type: ActionType
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def spec(self) -> ActionSpec:
        return SPECS[self.action_type]

    @property
    def is_final(self) -> bool:
        """Whether it sends or deletes, and so must be the last step."""
        return self.action_type in IRREVERSIBLE

    def __str__(self) -> str:
        if (label := self.parameters.get("label")) is not None:
            return f"{self.action_type} {label}"
        if self.action_type == "forward":
            return f"forward to {', '.join(recipients_of(self.parameters))}"
        if self.action_type == "snooze":
            until = self.parameters.get("until")
            span = f"{self.parameters.get('amount')} {self.parameters.get('units')}"
            return f"snooze until {until}" if until else f"snooze {span}"
        return self.action_type


def steps_of(action_type: str, parameters: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of an action: one, unless it is several; none for a decision to do nothing. Raises Fatal when the
    parameters are not what `combined` makes.
    """
    if action_type == "none":
        return ()
    if action_type != "several":
        return (Step(cast("ActionType", action_type), parameters),)
    try:
        return _stored_steps(parameters)
    except BadInput as error:
        raise Fatal(str(error)) from None


def combined(steps: Sequence[Step]) -> tuple[DecidedType, dict[str, Any]]:
    """The type and the parameters of these steps as one action."""
    match steps:
        case []:
            return "none", {}
        case [only]:
            return only.action_type, dict(only.parameters)
        case _:
            return "several", {"actions": [_as_stored(each) for each in steps]}


def check_action(action_type: str, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of an action, which may be several. Raises BadInput."""
    if action_type == "several":
        check_steps(_stored_steps(parameters))
    else:
        check_parameters(action_type, parameters)


def is_irreversible(action_type: str, parameters: Mapping[str, Any]) -> bool:
    """Whether any part of the action cannot be undone."""
    return any(each.is_final for each in steps_of(action_type, parameters))


def sending_step(action_type: str, parameters: Mapping[str, Any]) -> Step | None:
    """The step that sends mail, if there is one."""
    return next((each for each in steps_of(action_type, parameters) if each.action_type in SENDING), None)


def leaves_inbox(steps: Iterable[Step]) -> bool:
    """Whether a message leaves the inbox by these steps."""
    return any(step.spec.leaves_inbox for step in steps)


def shown(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action in one line, such as `apply_label Receipts, archive`."""
    return ", ".join(map(str, steps_of(action_type, parameters))) or "none"


def read_steps(given: object) -> tuple[Step, ...]:
    """The steps in a document. Raises BadInput, which names the step."""
    if not isinstance(given, list) or not given:
        raise BadInput("actions", "is not a list of actions, or is empty", _FORM)
    items = cast("list[object]", given)
    if len(items) > MOST_STEPS:
        raise BadInput("actions", f"are {len(items)}", f"give at most {MOST_STEPS}")
    steps = tuple(_read_step(f"actions[{number}]", each) for number, each in enumerate(items))
    check_steps(steps)
    return steps


def as_items(steps: Iterable[Step]) -> list[Any]:
    """The steps as `read_steps` reads them."""
    return [_as_item(each) for each in steps]


def check_steps(steps: Sequence[Step]) -> None:
    """Check steps one by one and together. Raises BadInput."""
    if not steps or len(steps) > MOST_STEPS:
        raise BadInput("actions", f"are {len(steps)}", f"give between 1 and {MOST_STEPS}")
    for number, step in enumerate(steps):
        where = f"actions[{number}]"
        try:
            check_parameters(step.action_type, step.parameters)
        except BadInput as error:
            raise BadInput(f"{where} ({step.action_type}), {error.field}", error.problem, error.remedy) from None
        for earlier in steps[:number]:
            if (problem := conflict(earlier, step)) is not None:
                raise BadInput(where, problem, "leave one out")
        if step.is_final and number < len(steps) - 1:
            raise BadInput(where, f"{step.action_type} is not the last", "put it last; nothing is undone after it")


def conflict(one: Step, other: Step) -> str | None:
    """Why two steps cannot be in one action; None when they can."""
    first, second = one.action_type, other.action_type
    if one.is_final and other.is_final:
        return f"{first} and {second} both send or delete; one action does so once"
    if one.spec.says_where and other.spec.says_where and first != second:
        return f"{first} and {second} both say where the mail goes"
    if one.spec.inverse == second and not other.spec.names_label:
        return f"{first} and {second} contradict each other"
    if one.spec.names_label and other.spec.names_label and _same_label(one, other):
        return "the label is given twice" if first == second else "the label is both applied and removed"
    return f"{first} is given twice" if first == second and not one.spec.names_label else None


class Joined(NamedTuple):
    """The combined steps of several rules, and the omitted ones in words."""

    steps: tuple[Step, ...]
    left_out: tuple[str, ...]


def joined(parts: Iterable[tuple[str, Sequence[Step]]]) -> Joined:
    """Join what several rules contribute, each given by name. The first to say something has precedence: a later step
    that contradicts it is left out, and one that repeats it is not done twice.
    """
    steps: list[Step] = []
    left_out: list[str] = []
    for name, contributed in parts:
        for step in contributed:
            if step in steps:
                continue
            problem = next((found for each in steps if (found := conflict(each, step)) is not None), None)
            if problem is None and len(steps) == MOST_STEPS:
                problem = f"there are {MOST_STEPS} actions before it"
            if problem is None:
                steps.append(step)
            elif not any(_same(each, step) for each in steps):
                left_out.append(f"{step} of the rule {name!r} is left out: {problem}")
    # The only one that sends or deletes goes last, whichever rule contributed it.
    return Joined(tuple(sorted(steps, key=lambda each: each.is_final)), tuple(left_out))


def _same(one: Step, other: Step) -> bool:
    """Whether two steps do the same, though the names of their labels are spelled differently."""
    return one.action_type == other.action_type and "label" in one.parameters and _same_label(one, other)


def _same_label(one: Step, other: Step) -> bool:
    return str(one.parameters.get("label", "")).casefold() == str(other.parameters.get("label", "")).casefold()


def _as_stored(step: Step) -> dict[str, Any]:
    stored: dict[str, Any] = {"action": step.action_type}
    return stored | ({"parameters": dict(step.parameters)} if step.parameters else {})


def _stored_steps(parameters: Mapping[str, Any]) -> tuple[Step, ...]:
    given = parameters.get("actions")
    if set(parameters) != {"actions"} or not isinstance(given, list | tuple):
        raise BadInput("parameters", "are not a list of actions", "give {actions: [{action: archive}]}")
    return tuple(
        _stored_step(f"actions[{number}]", each) for number, each in enumerate(cast("Sequence[object]", given))
    )


def _stored_step(field: str, given: object) -> Step:
    found = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else dict[str, Any]()
    parameters: object = found.get("parameters", {})
    if not {"action"} <= found.keys() <= {"action", "parameters"} or not isinstance(parameters, Mapping):
        raise BadInput(field, "is not an action with its parameters", "give {action: archive}")
    return Step(known_action(str(found["action"])), cast("Mapping[str, Any]", parameters))


def _read_step(field: str, given: object) -> Step:
    if isinstance(given, str):
        name, _, argument = given.strip().partition(" ")
        action_type = _action_type(field, name)
        return Step(action_type, _from_text(field, action_type, argument.strip()))
    if isinstance(given, Mapping) and len(cast("Mapping[object, object]", given)) == 1:
        ((key, value),) = cast("Mapping[object, Any]", given).items()
        name = str(key)
        action_type = _action_type(field, name)
        if value is None or isinstance(value, str):
            return Step(action_type, _from_text(field, action_type, (value or "").strip()))
        if isinstance(value, Mapping):
            return Step(action_type, cast("Mapping[str, Any]", value))
    raise BadInput(field, "is not an action", _FORM)


def _action_type(field: str, name: str) -> ActionType:
    for action_type in ACTION_TYPES:
        if action_type == name:
            return action_type
    remedy = did_you_mean(name[:80], ACTION_TYPES, f"use one of {', '.join(ACTION_TYPES)}")
    raise BadInput(field, f"{shown_name(name)!r} is not an action", remedy)


def _from_text(field: str, action_type: ActionType, text: str) -> dict[str, Any]:
    if not text:
        return {}
    argument = SPECS[action_type].argument
    if argument is None:
        raise BadInput(field, f"{action_type} takes no {shown_name(text)!r}", _FORM)
    return {argument: text}


def _as_item(step: Step) -> Any:
    if not step.parameters:
        return step.action_type
    argument = step.spec.argument
    if argument is not None and set(step.parameters) == {argument} and isinstance(step.parameters[argument], str):
        return {step.action_type: step.parameters[argument]}
    return {step.action_type: dict(step.parameters)}
