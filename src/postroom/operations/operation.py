"""The table of operations: each is declared once, where its function is, and every interface reads the declaration.

    @TENANTS.operation(OPERATE, post("/outbound/tenants/{tenant}/pause"), command("tenant pause {tenant}"), signs=True)
    async def pause_tenant(by: Caller, /, tenant: TenantName) -> TenantView:
        \"\"\"Accept and send nothing for a tenant. Safe to repeat.\"\"\"

The parameters of the function say what it needs. Those before the slash are parts of the product, found by their types
(`operations/parts.py`): the caller, the database, the clock, the settings, an overview. Those after it are the
arguments, which `Argument` describes and bounds. The return type is a view, the docstring is the description.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from inspect import Parameter, getdoc, signature
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from postroom.core.access import Access
from postroom.core.roles import Principal, Role
from postroom.store.engine.database import Database

Method = Literal["GET", "POST", "PUT", "DELETE"]
Run = Callable[..., Awaitable[Any]]
AnyRun = TypeVar("AnyRun", bound=Run)
REQUIRED = Parameter.empty
LONGEST_TEXT = 500
MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Argument:
    """The purpose of an argument, and its bounds: the length of a text or a list, the value of a number.

    A text has 1 to 500 characters, unless the argument says otherwise; 0 for the most is no bound.

    Programs send it under its own name, or `sent_as` another: a body may name something as the path does. People type
    it on the command line under its own name, or `typed_as` another: `--for WHOM`, or `ID_OR_ADDRESS` for one without
    an option. A hidden option is not in the help, and one that is not typed is for programs alone. A time is in the
    past, unless it `is_ahead`.
    """

    description: str = ""
    least: int | float | None = None
    most: int | float | None = None
    sent_as: str | None = None
    typed_as: str | None = None
    is_hidden: bool = False
    is_typed: bool = True
    is_ahead: bool = False


@dataclass(frozen=True, slots=True)
class NextPage:
    """Marks the argument that says where a page begins: the `next` of the page before, as the operation made it.

    Interfaces seal it, so that callers cannot make one up; the key of a list `of_numbers` is a number.
    """

    of_numbers: bool = False


@dataclass(frozen=True, slots=True)
class FoundBy:
    """Marks an argument that people name on the command line otherwise than programs: by a name, or some digits of an
    id. The function finds the id that they mean, and `typed` is how people type it."""

    find: Callable[[Database, str], Coroutine[Any, Any, UUID]]
    typed: Argument


@dataclass(frozen=True, slots=True)
class Spread:
    """Marks a parameter whose fields are arguments of their own; the function gets them together, as one object.

    async def submit_mail(by: Caller, /, mail: Annotated[SubmittedMail, Spread()]) -> AcceptedMail:
    """


_MARKS = (Argument, NextPage, FoundBy, Spread)
LIMIT = Argument(f"How many at most, 1 to {MOST_LISTED}.", 1, MOST_LISTED)
Limit = Annotated[int, LIMIT]
Next = Annotated[str | None, NextPage(), Argument("`next` of the page before; else the first page.")]
NextNumber = Annotated[
    int | None, NextPage(of_numbers=True), Argument("`next` of the page before; else the first page.")
]


@dataclass(frozen=True, slots=True)
class OperationArgument:
    """One argument of an operation."""

    name: str
    type: Any
    default: Any = field(hash=False)
    argument: Argument
    page: NextPage | None
    found_by: FoundBy | None = None
    default_factory: Callable[[], Any] | None = None
    """Makes the default of a field, which programs then see nowhere."""

    @property
    def typed(self) -> Argument:
        """How people type it on the command line."""
        return self.argument if self.found_by is None else self.found_by.typed

    @classmethod
    def of(cls, name: str, hint: Any, default: Any) -> "OperationArgument":
        """Read a parameter's type, whose marks are its description and bounds."""
        type_, marks = _type_and_marks(hint)
        argument = next((each for each in reversed(marks) if isinstance(each, Argument)), Argument())
        page = next((each for each in marks if isinstance(each, NextPage)), None)
        found_by = next((each for each in marks if isinstance(each, FoundBy)), None)
        return cls(name, type_, default, argument, page, found_by)


@dataclass(frozen=True, slots=True)
class Http:
    """The operation in the JSON API. Arguments that the path does not name are in the query of a GET, else in the body.

    With `once`, an `Idempotency-Key` makes sure that a repeated request is not done twice.
    """

    method: Method
    path: str
    status: int = 200
    once: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The operation as a command: `tenant pause {tenant}` has one argument and an option for each other one.

    A list is printed as a table of `columns`. Of anything else people see `line`, a format of the view's fields or a
    function of the view, or else its fields: those of `columns`, or all. `below` follows them, then `tables`: lists in
    the view with their columns. `notes` are lines on standard error. Programs get the fields; `row` makes them where
    they are not those of the view, and `cells` those for people where they differ.
    """

    words: str
    columns: Sequence[str] = ()
    line: str | Callable[[Any], str] | None = None
    row: Callable[[Any], Mapping[str, object]] | None = None
    below: Callable[[Any], str] | None = None
    notes: Callable[[Any], Iterable[str]] | None = None
    cells: Callable[[Any], Mapping[str, object]] | None = None
    tables: Mapping[str, Sequence[str]] | None = field(default=None, hash=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The group and the command, or the one command that is no group."""
        return tuple(word for word in self.words.split() if word[0] != "{")

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word[1:-1] for word in self.words.split() if word[0] == "{")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The operation in a command that is written by hand, since it asks, watches, or reads and writes files."""

    words: str


Sentence = Callable[[Any, Mapping[str, Any]], str]
"""Makes a sentence of an operation's answer and its arguments."""


@dataclass(frozen=True, slots=True)
class PageForm:
    """The operation as a form on the pages, whose fields are its arguments; parts of the address may be arguments too.

    People then read `done`: a format of the fields of the answer and of the arguments, or a function of both. They read
    it on the page that the form was on, or on the page `to`. `opens` is the field or argument with the id of an action,
    whose message a link beside the sentence opens. Who gives no reason signs with `reason`.
    """

    address: str
    done: str | Sentence
    to: str | None = None
    opens: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """The operation in a form that is written by hand, since it uploads, has several steps, or shows a page of its
    own."""

    address: str


@dataclass(frozen=True, slots=True)
class Hints:
    """Hints for clients: whether a tool only reads, is destructive, or is idempotent."""

    read_only: bool
    destructive: bool
    idempotent: bool


READS = Hints(read_only=True, destructive=False, idempotent=True)
ADDS = Hints(read_only=False, destructive=False, idempotent=False)
ADDS_ONCE = Hints(read_only=False, destructive=False, idempotent=True)
ENDS = Hints(read_only=False, destructive=True, idempotent=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """The operation as a tool over MCP, for the tokens of its access and for those of the roles in `also`.

    Tools `across_accounts` show the events of every account: they do not exist for an agent that is bound to one.
    """

    name: str
    title: str
    hints: Hints
    also: frozenset[Role] = frozenset()
    across_accounts: bool = False


Interface = Http | Command | Tool | Dialogue | PageForm | Flow


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. With `signs`, its caller may give a reason, which goes into the audit log."""

    noun: "Noun"
    access: Access
    run: Run
    http: Http | None
    command: Command | None
    tool: Tool | None
    dialogues: Sequence[str]
    """The commands written by hand that run it."""
    form: PageForm | None
    flows: Sequence[str]
    """The addresses of forms written by hand that run it."""
    signs: bool

    @property
    def id(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        return " ".join((getdoc(self.run) or "").split())

    @property
    def answer(self) -> Any:
        """The type of its answer."""
        return _hints(self.run)["return"]

    @property
    def arguments(self) -> tuple[OperationArgument, ...]:
        return tuple(each for each in _parameters(self.run) if isinstance(each, OperationArgument))

    @property
    def parts(self) -> tuple[Any, ...]:
        """The types of the parts of the product that it needs."""
        return tuple(each[1] for each in _parameters(self.run) if not isinstance(each, OperationArgument))

    def keywords(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """These values of its arguments, as its function takes them."""
        given = {each.name: values[each.name] for each in self.arguments if each.name in values}
        for name, made in _spread(self.run):
            own = {each.name: given.pop(each.name) for each in arguments_of(made) if each.name in given}
            given[name] = made(**own)
        return given

    @property
    def forms(self) -> tuple[str, ...]:
        """The addresses of its forms on the pages: of the one made from the table, and of those written by hand."""
        return (*(() if self.form is None else (self.form.address,)), *self.flows)

    @property
    def tokens(self) -> frozenset[Role]:
        """The roles of tokens that have it as a tool."""
        return frozenset() if self.tool is None else self.access.tokens | self.tool.also

    def exists_for(self, principal: Principal) -> bool:
        """Whether the holder of a token has it as a tool."""
        across = self.tool is not None and self.tool.across_accounts
        return principal.role in self.tokens and not (across and principal.is_bound_agent)


class Noun:
    """The operations of one noun."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.operations: list[Operation] = []

    def operation(self, access: Access, *interfaces: Interface, signs: bool = False) -> Callable[[AnyRun], AnyRun]:
        """Declare the decorated function as an operation on these interfaces."""
        of = {type(each): each for each in interfaces}

        def declare(run: AnyRun) -> AnyRun:
            http, command, tool, form = of.get(Http), of.get(Command), of.get(Tool), of.get(PageForm)
            dialogues = tuple(each.words for each in interfaces if isinstance(each, Dialogue))
            flows = tuple(each.address for each in interfaces if isinstance(each, Flow))
            made = Operation(self, access, run, http, command, tool, dialogues, form, flows, signs)  # type: ignore[arg-type]
            self.operations.append(made)
            return run

        return declare


def get(path: str) -> Http:
    return Http("GET", path)


def post(path: str, *, status: int = 200, once: bool = False) -> Http:
    return Http("POST", path, status, once)


def put(path: str) -> Http:
    return Http("PUT", path)


def delete(path: str) -> Http:
    return Http("DELETE", path)


def command(
    words: str,
    *columns: str,
    line: str | Callable[[Any], str] | None = None,
    row: Callable[[Any], Mapping[str, object]] | None = None,
    below: Callable[[Any], str] | None = None,
    notes: Callable[[Any], Iterable[str]] | None = None,
    cells: Callable[[Any], Mapping[str, object]] | None = None,
    tables: Mapping[str, Sequence[str]] | None = None,
    outcome: tuple[str, str] | None = None,
) -> Command:
    """With an `outcome`, such as `("name", "removed")`, people and programs get that field and this result."""
    if outcome is not None:
        path, result = outcome
        key = path.rpartition(".")[2]
        line = f"{{{key}}}  {{result}}"
        row = _outcome(key, attrgetter(path), result)
    return Command(words, columns, line, row, below, notes, cells, tables)


def _outcome(key: str, value: Callable[[Any], object], result: str) -> Callable[[Any], Mapping[str, object]]:
    return lambda view: {key: value(view), "result": result.format(view)}


def dialogue(words: str) -> Dialogue:
    return Dialogue(words)


def form(
    address: str,
    done: str | Sentence = "{done}",
    *,
    to: str | None = None,
    opens: str | None = None,
    reason: str | None = None,
) -> PageForm:
    return PageForm(address, done, to, opens, reason)


def flow(address: str) -> Flow:
    return Flow(address)


def tool(name: str, title: str, hints: Hints, *, also: Set[Role] = frozenset(), across_accounts: bool = False) -> Tool:
    return Tool(name, title, hints, frozenset(also), across_accounts)


@cache
def _hints(run: Run) -> dict[str, Any]:
    return get_type_hints(run, include_extras=True)


@cache
def _parameters(run: Run) -> tuple["OperationArgument | tuple[str, Any]", ...]:
    hints, spread = _hints(run), dict(_spread(run))
    found: list[OperationArgument | tuple[str, Any]] = []
    for name, each in signature(run).parameters.items():
        if each.kind is Parameter.POSITIONAL_ONLY:
            found.append((name, hints[name]))
        elif name in spread:
            found += arguments_of(spread[name])
        else:
            found.append(OperationArgument.of(name, hints[name], each.default))
    return tuple(found)


@cache
def _spread(run: Run) -> tuple[tuple[str, Any], ...]:
    """The parameters whose fields are arguments of their own, each with its class."""
    hints = {name: get_args(hint) for name, hint in _hints(run).items() if get_origin(hint) is Annotated}
    return tuple((name, type_) for name, (type_, *marks) in hints.items() if Spread() in marks)


@cache
def arguments_of(made: Any) -> tuple[OperationArgument, ...]:
    """The fields of a dataclass or a named tuple, as arguments."""
    hints = get_type_hints(made, include_extras=True)
    if hasattr(made, "_fields"):
        defaults = made._field_defaults
        return tuple(OperationArgument.of(name, hints[name], defaults.get(name, REQUIRED)) for name in made._fields)
    return tuple(_argument_of(each, hints[each.name]) for each in fields(made))


def _argument_of(field: Field[Any], hint: Any) -> OperationArgument:
    argument = OperationArgument.of(field.name, hint, REQUIRED if field.default is MISSING else field.default)
    return argument if field.default_factory is MISSING else replace(argument, default_factory=field.default_factory)


def _type_and_marks(hint: Any) -> tuple[Any, list[Any]]:
    """The type and our marks, also those of the one type that may be left out: `Name | None`.

    Marks for the validation by interfaces remain in the type.
    """
    if get_origin(hint) is Annotated:
        type_, *marks = get_args(hint)
        bare, inner = _type_and_marks(type_)
        others = [each for each in marks if not isinstance(each, _MARKS)]
        return (Annotated[bare, *others] if others else bare), [*inner, *marks]
    if get_origin(hint) in (Union, UnionType):
        members = [each for each in get_args(hint) if each is not NoneType]
        if len(members) == 1 and get_origin(members[0]) is Annotated:
            bare, marks = _type_and_marks(members[0])
            return bare | None, marks
    return hint, []
