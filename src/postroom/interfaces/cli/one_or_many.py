"""Commands that act on one thing by its id, or on many that filters find. Many are counted first, and you are asked."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from postroom.core.views import Done
    from postroom.operations.caller import Caller
    from postroom.operations.installation.database import Database


class Found(NamedTuple):
    """Rows that the filters found, and their number by type."""

    ids: Sequence[UUID]
    by_type: Mapping[str, int] | None = None


class OneOrMany(NamedTuple):
    """A command on one or many: how it finds them, acts on them, and says what was done."""

    noun: str
    named: "Callable[[Database, str], Coroutine[Any, Any, UUID]]"
    """Finds the one that a short id means."""
    done: str
    act: "Callable[[Caller, UUID], Coroutine[Any, Any, Done]]"
    find: Callable[[], Found]
    act_on_all: "Callable[..., Coroutine[Any, Any, int]]"
    """Takes the caller and the `ids`, and returns how many it was done to."""

    def run(self, session: Session, id: str | None, filters: "DataclassInstance", *, yes: bool) -> None:
        """Act on the one with this id, or on those that the filters find: the options of the same names."""
        given = {f"--{name}": value for name, value in asdict(filters).items()}
        is_filtered = any(given.values())
        if id is None and is_filtered:
            self._run_many(session, yes)
        elif id is None:
            *others, last = given
            raise BadInput("ID", "is missing", f"give the id of a {self.noun}, or {', '.join(others)} or {last}")
        elif is_filtered:
            raise BadInput("ID", "is given together with a filter", "give one of them")
        else:
            answer = session.act(self._act_on, id)
            session.show_line(answer, answer.done)

    async def _act_on(self, by: "Caller", id: str) -> "Done":
        return await self.act(by, await self.named(by.database, id))

    def _run_many(self, session: Session, yes: bool) -> None:
        ids, by_type = self.find()
        several = counted(len(ids), self.noun)
        if ids and not yes:
            kinds = ", ".join(f"{count:,} {each}" for each, count in sorted((by_type or {}).items()))
            of = f" ({kinds})" if kinds else ""
            typer.confirm(f"{several}{of} would be {self.done}. Do it?", abort=True, err=True)
        with progress(session.as_json):
            done = session.act(self.act_on_all, ids=ids) if ids else 0
        changed = f"; {len(ids) - done:,} changed meanwhile and stay as they are" if done < len(ids) else ""
        line = f"{self.done.capitalize()}: {done:,} of {several}{changed}." if ids else f"No {self.noun} matches."
        types = {} if by_type is None else {"by_type": by_type}
        session.show_line({"matched": len(ids), "done": done, **types}, line)
