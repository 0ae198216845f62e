"""The forms in which programs and pages send the arguments of operations, made from their declarations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from postroom.core.errors import BadInput
from postroom.core.strict import MOST_KEYS, shown_name
from postroom.core.suggestions import did_you_mean
from postroom.interfaces.cursors import LONGEST, opened, opened_number
from postroom.operations.operation import LONGEST_TEXT, REQUIRED, Argument, Operation, OperationArgument, arguments_of

LONGEST_REASON = 500
# Text that both databases can store. The pattern also refuses invalid text, such as half a surrogate pair.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


def _check_range(moment: datetime) -> datetime:
    """Refuse a time whose offset puts it before the first year, or after the last, in UTC."""
    try:
        moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("time_range", "is out of range") from None
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_check_range)]
REASON = OperationArgument("reason", str | None, None, Argument("Why, for the audit log.", 0, LONGEST_REASON), None)


class Arguments(BaseModel):
    """The base of all arguments: unknown ones are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AnyArguments = TypeVar("AnyArguments", bound=Arguments)


@cache
def form_of_arguments(name: str, wanted: tuple[OperationArgument, ...]) -> type[Arguments]:
    """The form of these arguments, under a name that descriptions show."""
    definitions: dict[str, Any] = {each.name: _definition(each) for each in wanted}
    return create_model(name, __base__=Arguments, **definitions)


def values_of(operation: Operation, form: Arguments) -> dict[str, Any]:
    """The arguments that were sent, by name; places of pages are opened."""
    values = {name: getattr(form, name) for name in type(form).model_fields}
    for each in operation.arguments:
        if each.page is not None and each.name in values:
            read = opened_number if each.page.of_numbers else opened
            values[each.name] = read(operation.id, values[each.name])
    return values


def read_arguments(tool: str, form: type[AnyArguments], given: Mapping[str, Any] | None) -> AnyArguments:
    """Validate the arguments. Raises BadInput, which names the wrong one."""
    try:
        if given is not None and len(given) > MOST_KEYS:
            raise BadInput("arguments", f"are more than {MOST_KEYS}", f"{tool} takes {', '.join(_fields(form))}")
        return form.model_validate(given or {})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = [shown_name(str(part)) for part in first["loc"]]
    field = ".".join(path) or "arguments"
    match first["type"]:
        case "extra_forbidden":
            takes = ", ".join(_fields(form)) or "no arguments"
            remedy = did_you_mean(path[-1], _fields(form), f"leave it out; {tool} takes {takes}")
            raise BadInput(field, f"is not an argument of {tool}", remedy)
        case "missing":
            raise BadInput(field, "is missing", _description(form, field))
        case "string_too_long":
            raise BadInput(field, f"is longer than {first.get('ctx', {})['max_length']:,} characters", "shorten it")
        case "timezone_aware":
            raise BadInput(field, "has no time zone", "add an offset, such as Z or +01:00")
        case _:
            raise BadInput(field, first["msg"], _description(form, field))


def _fields(form: type[Arguments]) -> Mapping[str, FieldInfo]:
    """The fields by the names under which they are sent."""
    return {field.alias or name: field for name, field in form.model_fields.items()}


def _description(form: type[Arguments], path: str) -> str:
    """The description of the argument, also for a field inside it."""
    field = _fields(form).get(path.partition(".")[0])
    return (field and field.description) or "see its schema"


def _definition(argument: OperationArgument) -> tuple[Any, Any]:
    default: dict[str, Any] = {"default": ... if argument.default is REQUIRED else argument.default}
    if argument.default_factory is not None:
        default = {"default_factory": argument.default_factory}
    described, type_ = argument.argument, argument.type
    if argument.page is not None:
        described, type_ = Argument(described.description, 0, LONGEST), str | None
    alias, description = described.sent_as, described.description or None
    return _type(type_), Field(alias=alias, description=description, **default, **_bounds(type_, described))


def _bounds(type_: Any, argument: Argument) -> dict[str, Any]:
    least, most = argument.least, argument.most
    kinds = [
        each
        for each in (get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,))
        if each is not NoneType
    ]
    kind = kinds[0] if len(kinds) == 1 else object
    if kind is str:
        found = {"min_length": 1 if least is None else least, "max_length": LONGEST_TEXT if most is None else most}
    elif get_origin(kind) in (list, tuple, Sequence, dict, Mapping):
        found = {"min_length": least, "max_length": most}
    else:
        return {name: value for name, value in (("ge", least), ("le", most)) if value is not None}
    return {name: value for name, value in found.items() if value}


def _type(hint: Any) -> Any:
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if hint is str:
        return Text
    if hint is datetime:
        return Moment
    if origin is Annotated:
        type_, *marks = arguments
        argument = next((each for each in marks if isinstance(each, Argument)), Argument())
        bounds = Field(description=argument.description or None, **_bounds(type_, argument))
        return Annotated[_type(type_), *(each for each in marks if each is not argument), bounds]
    if origin in (Union, UnionType):
        return Union[tuple(_type(each) for each in arguments)]  # noqa: UP007 - made at run time
    if origin in (list, tuple, Sequence, Iterable):
        return list[_type(arguments[0])]
    if origin in (dict, Mapping):
        key = arguments[0] if arguments[0] is str else _type(arguments[0])
        return dict[key, _type(arguments[1])]
    if origin is not Literal and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _object(hint)
    return hint


@cache
def _object(made: Any) -> Any:
    """An object among the arguments: read as strictly as they are, then made."""
    form = form_of_arguments(made.__name__, arguments_of(made))
    return Annotated[form, AfterValidator(lambda read: made(**vars(read)))]
