"""`postroom rules test`: show what the rules say about a message, and why. It changes nothing."""

from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.output import cell, show_json, show_list
from postroom.interfaces.cli.rule_options import read_drafts
from postroom.interfaces.cli.session import Session
from postroom.operations.mail.mail_ids import find_message
from postroom.operations.operation import Argument
from postroom.operations.rules.rule_trial import TrialResult, prepare_trial

COLUMNS = ("rule", "result", "why")


def try_rules(
    session: Session,
    path: Annotated[
        Path | None, Argument("An .eml file, an mbox, a Maildir, or a folder of messages.", typed_as="MAIL")
    ] = None,
    message: Annotated[
        str | None, Argument("A stored message, by its short id or any other.", typed_as="--message ID")
    ] = None,
    rules_file: Annotated[
        Path | None, Argument("Test the rules in this file instead of those in use.", typed_as="--rules FILE")
    ] = None,
    account: Annotated[
        str | None, Argument("The account that received the mail.", typed_as="--account ID_OR_ADDRESS")
    ] = None,
    everything: Annotated[bool, Argument("Explain every rule, even for several messages.", typed_as="--all")] = False,
) -> None:
    """Test the rules on mail, changing nothing: which one decides, and why the others do not.

    For one message every rule is explained. For several, only the deciding rule is shown.
    """
    if (path is None) == (message is None):
        raise BadInput("rules test", "needs exactly one kind of mail", "give MAIL, or --message ID")

    drafts = None if rules_file is None else read_drafts(rules_file)
    stored = None if message is None else session.call(find_message, message)
    trial = session.call(prepare_trial, drafts, stored, account)
    mail = trial.messages(path or Path())
    first = list(islice(mail, 2))
    if not first:
        raise BadInput("MAIL", "contains no message", "give an .eml file, an mbox, a Maildir, or a folder of messages")
    now, every_rule = session.clock(), everything or len(first) == 1
    for each in chain(first, mail):
        _show(trial.on(each, now, every_rule=every_rule), session.as_json)


def _show(result: TrialResult, as_json: bool) -> None:
    if as_json:
        row = {"message": result.message, "matched": result.matched, "action": result.action}
        details = {} if result.rules is None else {"rules": [asdict(each) for each in result.rules]}
        show_json({**row, "shadowed": result.shadowed, **details})
        return
    outcome = "no rule matches" if result.matched is None else f"{result.matched} → {result.action}"
    typer.echo(f"{cell(result.message)}: {cell(outcome)}")
    if result.rules is not None:
        show_list(result.rules, COLUMNS, as_json=False)
