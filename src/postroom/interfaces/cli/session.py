"""One run of a command: the options that commands share, the database, and how its answer is shown."""

import copy
import functools
import inspect
import os
import shlex
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin

import typer
from typer.models import ParameterInfo

from postroom.core.errors import NothingHere
from postroom.interfaces.cli.enter import at_terminal, presses
from postroom.interfaces.cli.options import AsJson, DataDir, settings_for
from postroom.interfaces.cli.output import Row, show_line, show_list, show_one, show_result
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.running import run_briefly
from postroom.interfaces.cli.whole_help import WholeHelp
from postroom.system.service_manager import report_ready

if TYPE_CHECKING:
    from postroom.compose.application import PostroomApplication, Ready
    from postroom.interfaces.cli.parameters import OneOption, OptionGroup
    from postroom.operations.caller import Caller
    from postroom.operations.installation.database import Database
    from postroom.operations.installation.live_settings import LiveSettings
    from postroom.operations.operation import Operation
    from postroom.settings.reading import Settings

P = ParamSpec("P")
T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class Session:
    """One run of a command. Settings are read, and logging is set up by them, when a command first asks for them."""

    def __init__(self, context: typer.Context, data_dir: Path | None, as_json: bool) -> None:
        self.application = application_of(context)
        self.data_dir = data_dir
        self.as_json = as_json
        self.reason: str | None = None
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @functools.cached_property
    def settings(self) -> "Settings":
        return self.settings_with({})

    @functools.cached_property
    def live_settings(self) -> "LiveSettings":
        """The settings in effect, with those that are stored in the database, if there is one."""
        from postroom.operations.installation.database import is_created
        from postroom.operations.installation.live_settings import LiveSettings

        live = LiveSettings(self.settings)
        if is_created(self.settings):
            self.call(live.refresh)
        return live

    def settings_with(self, overrides: Mapping[str, object]) -> "Settings":
        return settings_for(self.data_dir, overrides, as_json=self.as_json)

    def call(
        self, function: Callable[Concatenate["Database", P], Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function of `operations` on the database that the settings name, and return its answer."""

        async def opened() -> T:
            async with self.application.open_database(self.settings) as database:
                return await function(database, *args, **kwargs)

        try:
            return run_briefly(opened())
        except NothingHere as error:
            raise _with_demo(error, self.settings.data_dir) from None

    def act(
        self, function: Callable[Concatenate["Caller", P], Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call an operation that changes something as the person at the command line, and return its answer."""
        from postroom.interfaces.cli.operator import operator_signature
        from postroom.operations.caller import Caller

        async def signed(database: "Database", *args: P.args, **kwargs: P.kwargs) -> T:
            return await function(Caller(database, operator_signature(self.reason), self.clock), *args, **kwargs)

        return self.call(signed, *args, **kwargs)

    def run(self, operation: "Operation", arguments: Mapping[str, Any]) -> Any:
        """Run an operation of the table as the person at the command line, and return its answer."""
        from postroom.operations.parts import Parts
        from postroom.operations.running import find_named, run_operation

        async def asked(by: "Caller") -> Any:
            found = await find_named(operation, by.database, arguments)
            parts = Parts(self.settings, by.database, by.clock)
            await parts.live.refresh(by.database)
            return await run_operation(operation, parts, by, found)

        with progress(self.as_json):
            return self.act(asked)

    def ask(self, function: Callable[..., Coroutine[Any, Any, T]], **arguments: Any) -> T:
        """Run the operation that this function is, in a command written by hand, and return its answer."""
        from postroom.operations.nouns import operation_of

        return self.run(operation_of(function), arguments)

    def because(self, reason: str | None) -> "Session":
        """The same session, which gives this reason for what it changes."""
        session = copy.copy(self)
        session.reason = reason
        return session

    def at(self, now: datetime) -> "Session":
        """The same session, at one moment."""
        session = copy.copy(self)
        session.clock = lambda: now
        return session

    def command_line(self, words: str) -> str:
        """A command as the user can type it: with the program as it was called, and for the same data folder."""
        return command_line(words, self.data_dir)

    def show_list(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        show_list(rows, columns, as_json=self.as_json)

    def show_one(self, row: Row) -> None:
        show_one(row, as_json=self.as_json)

    def show_result(self, name: object, result: str, *, key: str = "id") -> None:
        show_result(name, result, as_json=self.as_json, key=key)

    def show_line(self, row: Row, line: str) -> None:
        show_line(row, line, as_json=self.as_json)

    def invite(self, link: str) -> None:
        """Show the user, or the program that asked for JSON, the one-time link: it is not logged."""
        said = f"\nTo set up sign-in, open this link in a browser. It works once and expires after a day:\n  {link}"
        again = "\n(Press Enter to see a link again.)" if at_terminal() else ""
        self.show_line({"sign_in_url": link}, f"{said}{again}")

    def presses(self) -> AsyncGenerator[None]:
        """Yield whenever the user presses Enter; never for a program."""
        return presses(for_program=self.as_json)

    def announce(self, what: str) -> "Ready":
        """Show the user, or the program that started us, the address on which a server now answers."""

        def ready(address: str) -> None:
            self.show_line({"url": address}, f"{what} {address}  (Ctrl-C stops it)")
            report_ready(os.environ)

        return ready


class Commands(typer.Typer):
    """Commands, of which those that take a `session` first have the options of all commands.

    A command that takes a dataclass has an option for each of its fields; other parameters may be declared as those
    of operations are.
    """

    def command(self, name: str | None = None, **options: Any) -> Callable[[Command], Command]:
        def declare(function: Command) -> Command:
            super(Commands, self).command(name, **options)(_with_shared_options(function))
            return function

        return declare


def command_line(words: str, data_dir: Path | None = None) -> str:
    """A command as the user can type it: with the program as it was called, for this data folder."""
    called = Path(sys.argv[0])
    program = "postroom"
    if called.name == program and shutil.which(program) not in (str(called), str(called.absolute())):
        program = shlex.quote(str(called))
    return f"{program} {words}" if data_dir is None else f"{program} {words} --data-dir {shlex.quote(str(data_dir))}"


def _with_demo(error: NothingHere, data_dir: Path) -> NothingHere:
    """The error, with the folder of a demo if there is one: its data may be what was looked for."""
    from postroom.operations.installation.demo import demo_folder
    from postroom.system.private_files import holds_data

    folder = demo_folder(data_dir)
    return NothingHere(f"{error}; the demo's data: --data-dir {folder}") if holds_data(folder) else error


def application_of(context: typer.Context) -> "PostroomApplication":
    """The application that `run` was given, out of the context of any command."""
    return cast("PostroomApplication", context.obj)


def one_command() -> Commands:
    """For a module that is one command, such as `postroom migrate`."""
    return Commands(rich_markup_mode=None, add_completion=False)


def command_group(summary: str) -> Commands:
    """For a module of several commands, such as `postroom jobs list`."""
    group = Commands(cls=WholeHelp, rich_markup_mode=None, add_completion=False, no_args_is_help=True)
    group.callback(help=summary)(lambda: None)
    return group


def _with_shared_options(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer is to see it: its own options, then the shared ones, instead of a session."""
    session, *own = inspect.signature(function).parameters.values()
    if session.annotation is not Session:
        return function
    declared = {each.name: found for each in own if (found := _read_declared(each)) is not None}

    def command(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False, **given: Any) -> None:
        session = Session(context, data_dir, as_json)
        read = {name: each.read(given, session.clock()) for name, each in declared.items()}
        function(session, **given, **read)

    context, *shared, _given = inspect.signature(command).parameters.values()
    spread = [each for one in own for each in (declared[one.name].parameters if one.name in declared else [one])]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (context, *spread, *shared)]
    functools.update_wrapper(command, function)
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _read_declared(parameter: inspect.Parameter) -> "OptionGroup | OneOption | None":
    """The parameter as options that are declared like arguments of operations; None for one that Typer reads."""
    hint = parameter.annotation
    type_, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not is_dataclass(type_) and (not marks or any(isinstance(each, ParameterInfo) for each in marks)):
        return None
    from postroom.interfaces.cli.parameters import OneOption, OptionGroup

    return OptionGroup(hint) if is_dataclass(type_) else OneOption(parameter)
