"""The forms that the table of operations declares: their fields are the arguments of the operation."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from postroom.core.choices import choice
from postroom.core.errors import BadInput, NotFound
from postroom.core.moments import read_moment, read_start
from postroom.core.strict import shown_name
from postroom.interfaces.argument_forms import form_of_arguments, read_arguments, values_of
from postroom.interfaces.dashboard.forms import Confirmation, Form, FormRoute, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import ON_THE_PAGE
from postroom.operations.operation import REQUIRED, Operation, OperationArgument, PageForm
from postroom.operations.registry import operations
from postroom.operations.running import run_operation

MOST_DIGITS = 18
IN_EVERY_FORM = ("form_token", "back", "reason")


def declared_forms(site: Site) -> list[FormRoute]:
    return [_route(site, each, each.form) for each in operations() if each.form is not None]


def _route(site: Site, operation: Operation, declared: PageForm) -> FormRoute:
    async def submit(form: Form) -> Confirmation:
        given = read_form(operation, form, site.parts.clock())
        answer = await run_operation(operation, site.parts, form.by, given)
        words = _Words(answer, given)
        sentence = declared.done.format_map(words) if isinstance(declared.done, str) else declared.done(answer, given)
        return Confirmation(sentence, declared.to, "" if declared.opens is None else str(words[declared.opens]))

    return form_route(site, declared.address, submit, reason=declared.reason or ON_THE_PAGE)


class _Words:
    """The fields of an answer by name, and the arguments that have no namesake among them."""

    def __init__(self, answer: object, given: Mapping[str, Any]) -> None:
        self._answer = answer
        self._given = given

    def __getitem__(self, name: str) -> Any:
        return getattr(self._answer, name) if hasattr(self._answer, name) else self._given[name]


def read_form(operation: Operation, form: Form, now: datetime) -> dict[str, Any]:
    """Return the arguments in a form, by name. Raises BadInput, which names the wrong one."""
    _check_names(operation, form)
    given: dict[str, Any] = {}
    for each in operation.arguments:
        name = each.argument.sent_as or each.name
        in_address = form.parameters.get(name)
        if in_address is not None and each.type is UUID:
            given[name] = read_id(in_address, NotFound(f"there is no such {name}"))
        elif found := in_address or (form.texts(name) if _is_list(each.type) else form.text(name)):
            given[name] = _read(name, each, found, now, form.zone)
        elif each.default is REQUIRED or _is_left_empty(name, each, form):
            raise BadInput(name, "is empty", "choose at least one" if _is_list(each.type) else "fill it in")
    arguments = form_of_arguments(f"{operation.id}_form", operation.arguments)
    return values_of(operation, read_arguments("this form", arguments, given))


def _check_names(operation: Operation, form: Form) -> None:
    """Refuse a page from before an update: without the field that it names otherwise, a form may mean everything."""
    known = {*IN_EVERY_FORM, *(each.argument.sent_as or each.name for each in operation.arguments)}
    for name in form.fields:
        if name not in known:
            raise BadInput(shown_name(name), "is no field of this form", "open the page again")


def _read(name: str, argument: OperationArgument, found: str | list[str], now: datetime, zone: tzinfo) -> object:
    """Return choices, ids, numbers and times as people write them; anything else as it is."""
    kinds = _kinds(argument.type)
    if isinstance(found, list):
        return [_id(name, each) for each in found] if UUID in kinds else found
    if get_origin(argument.type) is Literal:
        return choice(name, found, get_args(argument.type))
    if UUID in kinds:
        return _id(name, found)
    if int in kinds:
        return _number(name, argument, found)
    if datetime in kinds:
        is_ahead = argument.argument.is_ahead
        return read_moment(name, found, now, ahead=True) if is_ahead else read_start(name, found, now, zone)
    return found


def _id(name: str, text: str) -> UUID:
    return read_id(text, BadInput(name, f"{text[:40]!r} is no id", "open it from the list"))


def _number(name: str, argument: OperationArgument, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > MOST_DIGITS:
        raise BadInput(name, f"{text[:20]!r} is no number", "write it in digits")
    least, most = argument.argument.least, argument.argument.most
    if least is not None and most is not None and not least <= int(text) <= most:
        raise BadInput(name, f"{int(text)} is out of range", f"use {least} to {most}")
    return int(text)


def _is_left_empty(name: str, argument: OperationArgument, form: Form) -> bool:
    """Whether a number or a time is asked for and left empty, which does not mean its default."""
    return name in form.fields and bool({int, datetime} & _kinds(argument.type))


def _is_list(type_: Any) -> bool:
    """Whether an argument has several values, each in a field of its own."""
    return get_origin(type_) in (list, tuple, Sequence)


def _kinds(type_: Any) -> set[Any]:
    """The types that a value, or one of several, may have."""
    return set(get_args(type_) or (type_,))
