"""`postroom model`: the language model in use, its cost, and every call."""

from typing import TYPE_CHECKING

from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.table import group_of

if TYPE_CHECKING:
    from postroom.operations.rules.model import ModelInUse


def _show_status(session: Session, found: "ModelInUse") -> None:
    if found.status is None:
        session.show_line(found.row, str(found.row["says"]))
    else:
        session.show_one(found.row)


SUMMARY = "Show the language model in use, what it costs, and what it was asked."
app = group_of(SUMMARY, "model", "rules.model", status=_show_status)
