"""Commands about outgoing mail that take one mail by its id, or many by tenant, destination, state and time."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.moments import read_moment
from postroom.interfaces.cli.session import Session
from postroom.words.outbound import MANY

if TYPE_CHECKING:
    from postroom.operations.outbound.outbound_many import ManyAct

OneOrMany = Annotated[
    UUID | None,
    typer.Argument(metavar="[ID]", help="The id, as `postroom outbound list` shows it; without one, give a filter."),
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Many: all mail of this tenant.")]
Destination = Annotated[
    str | None, typer.Option("--destination", metavar="DOMAIN", help="Many: mail with a recipient at this domain.")
]
State = Annotated[str | None, typer.Option("--state", help="Many: only mail in this state.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help="Many: asked for since then: 24h, 7d, or a time.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="WHEN", help="Many: asked for before then.")]
Yes = Annotated[bool, typer.Option("--yes", help="Many: do it. Without this, only count what would be done.")]


class Wanted(NamedTuple):
    """The filter of a command, in the words that were given."""

    tenant: str | None
    destination: str | None
    state: str | None
    since: str | None
    until: str | None


def settle_one_or_many(
    session: Session,
    id: UUID | None,
    wanted: Wanted,
    act: "ManyAct",
    settle_one: Callable[[UUID], str],
    yes: bool,
    reason: str | None = None,
) -> None:
    """Settle the one mail and show its new state. Without an id, count those that fit and, with `yes`, settle them."""
    is_filtered = any(each is not None for each in wanted)
    if id is not None:
        if is_filtered:
            raise BadInput("ID", "is given together with a filter", "give one of them")
        session.show_result(id, settle_one(id))
    elif is_filtered:
        _settle_many(session, wanted, act, yes, reason)
    else:
        raise BadInput("ID", "is missing", "give the id of a mail, or --tenant, --destination, --state or --since")


def _settle_many(session: Session, wanted: Wanted, act: "ManyAct", yes: bool, reason: str | None) -> None:
    from postroom.operations.outbound.outbound_many import MailFilter, find_mail, settle_many

    now, (tenant, destination, state, since, until) = datetime.now(UTC), wanted
    first = None if since is None else read_moment("--since", since, now, ahead=False)
    last = None if until is None else read_moment("--until", until, now, ahead=False)
    ids = session.call(find_mail, act, MailFilter(tenant, destination, state, first, last))
    mails = f"{len(ids):,} mail{'' if len(ids) == 1 else 's'}"
    future, done = MANY[act]
    if not yes:
        line = f"{mails} would be {future}. Add --yes to do it." if ids else "No mail fits."
        session.show_line({"mails": len(ids), "done": 0}, line)
        return
    result = session.because(reason).act(settle_many, act, ids)
    changed = f"; {result.changed:,} changed meanwhile and stay as they are" if result.changed else ""
    row = {"mails": len(ids), "done": result.done, "changed": result.changed}
    session.show_line(row, f"{done}: {result.done:,} of {mails}{changed}.")
