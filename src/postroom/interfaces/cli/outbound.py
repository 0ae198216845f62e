"""`postroom outbound`: outgoing mail, and the questions about it that only a person can answer."""

from functools import partial
from typing import Annotated, Any

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.one_or_many import Found, OneOrMany
from postroom.interfaces.cli.options import Reason, Yes
from postroom.interfaces.cli.outbound_output import show_stats
from postroom.interfaces.cli.parameters import Without
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.operation import Argument
from postroom.operations.outbound.outbound import OUTGOING, cancel_mail, resolve_mail, send_mail_now
from postroom.operations.outbound.outbound_many import MailFilter, ManyAct, find_mail, settle_many
from postroom.words.outbound import PAST
from postroom_simulator.command import simulate

app = command_group("List and settle outgoing mail; see how fairly it is served; simulate the queue.")
add_commands(
    app, "outbound", "outbound.outbound", "outbound.outbound_lists", "outbound.outbound_stats", stats=show_stats
)

OneMail = Annotated[
    str | None,
    Argument("The short id, as `postroom outbound list` shows it; without one, give a filter.", typed_as="[ID]"),
]


@app.command()
def report(
    session: Session,
    file: Annotated[typer.FileBinaryRead, typer.Argument(metavar="FILE", help="A whole message; - reads stdin.")],
) -> None:
    """Take a delivery report or a complaint about mail that was sent."""
    from postroom.operations.outbound.reports import take_report

    concerned = session.call(take_report, file.read(), rule=session.settings.outbound.strike_rule)
    session.show_line({"recipients": concerned}, f"recipients concerned: {concerned}")


@app.command()
def resolve(
    session: Session,
    mail_id: OneMail = None,
    sent: Annotated[bool, Argument("It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, Argument("It was not sent: it is sent now.")] = False,
    *,
    wanted: Annotated[MailFilter, Without("state")],
    yes: Yes = False,
) -> None:
    """Say what happened to mail whose state is unknown, after you have checked: one by its id, or many by a filter."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or combined with --not-sent", "give --sent, or --not-sent to send it now")
    _settle(session, "sent" if sent else "not_sent", mail_id, wanted, yes)


@app.command()
def retry(session: Session, mail_id: OneMail = None, *, wanted: MailFilter, yes: Yes = False) -> None:
    """Send mail now that waits for its next attempt: one by its id, or many by a filter."""
    _settle(session, "retry", mail_id, wanted, yes)


@app.command()
def cancel(
    session: Session, mail_id: OneMail = None, *, wanted: MailFilter, yes: Yes = False, reason: Reason = None
) -> None:
    """Cancel mail that has not left yet, one by its id or many by a filter. Its action ends as canceled.

    Mail that is `stopping` is canceled by the next sender, unless the mailbox shows that it was already sent.
    """
    _settle(session.because(reason), "cancel", mail_id, wanted, yes)


def _settle(session: Session, act: ManyAct, mail_id: str | None, wanted: MailFilter, yes: bool) -> None:
    settle_one: dict[ManyAct, Any] = {
        "sent": partial(resolve_mail, outcome="sent"),
        "not_sent": partial(resolve_mail, outcome="not_sent"),
        "retry": send_mail_now,
        "cancel": cancel_mail,
    }
    command = OneOrMany(
        "mail",
        OUTGOING.find,
        PAST[act],
        settle_one[act],
        lambda: Found(session.call(find_mail, act, wanted)),
        partial(settle_many, act=act),
    )
    command.run(session, mail_id, wanted, yes=yes)


app.command()(simulate)
