"""`postroom rules test`: what the rules say about a message, and why. It touches nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, settings_for
from postroom.cli.output import cell, show_json, show_list
from postroom.cli.rule_places import placed, read_text
from postroom.cli.running import with_database
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.core.mail.mime import ParsedMessage
    from postroom.core.rules.explain import Explained
    from postroom.core.rules.rule import MessageFacts, Rule
    from postroom.core.rules.rulebook import Rulebook
    from postroom.store.engine.database import Database

NEW_MAIL = frozenset({"INBOX", "UNREAD", "inbox", "unread"})
COLUMNS = ("rule", "result", "why")


class Tried(NamedTuple):
    """A message, the account it came to, as far as that is known, and what of it is not here."""

    name: str
    account_id: UUID | None
    message: "MessageFacts"
    hidden: frozenset[str] = frozenset()


def try_rules(
    context: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(metavar="MAIL", help="An .eml file, an mbox, a Maildir, or a folder of messages.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", metavar="ID", help="A message that is here already, by its id.")
    ] = None,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Try the rules in this file, not those in use.")
    ] = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="The account that the mail came to.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Explain every rule, also when there is more than one message.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Try the rules on mail, touching nothing: which one decides, and why the others do not.

    Of one message every rule is explained. Of several, only the rule that decides about each is shown.
    """
    if (path is None) == (message is None):
        raise BadInput("rules test", "needs one thing to look at", "give MAIL, or --message ID")

    async def looking(database: "Database") -> "tuple[list[Rule], Tried | None, UUID | None]":
        from postroom.manage.accounts import find_account

        rules = await _rules(database, rules_file)
        stored = None if message is None else await _stored(database, message)
        owner = None if account is None else (await find_account(database, account)).id
        return rules, stored, owner

    rules, stored, owner = with_database(application_of(context), settings_for(data_dir), looking)
    mail = iter([stored]) if stored is not None else _in_files(path or Path(), owner)
    _show_all(rules, mail, everything, as_json)


def _show_all(rules: "list[Rule]", mail: "Iterator[Tried]", everything: bool, as_json: bool) -> None:
    from postroom.core.rules.rulebook import Rulebook

    book, now = Rulebook(rules), datetime.now(UTC)
    first = next(mail, None)
    if first is None:
        raise BadInput("MAIL", "holds no message", "give an .eml file, an mbox, a Maildir, or a folder of messages")
    second = next(mail, None)
    detailed = everything or second is None
    for tried in (first, *([] if second is None else [second])):
        _show(book, rules, tried, now, detailed, as_json)
    for tried in mail:
        _show(book, rules, tried, now, detailed, as_json)


def _show(book: "Rulebook", rules: "list[Rule]", tried: Tried, now: datetime, detailed: bool, as_json: bool) -> None:
    from postroom.core.rules.explain import explain

    outcome = book.decide(tried.account_id or UUID(int=0), tried.message, now, tried.hidden)
    ordered = sorted(rules, key=lambda rule: rule.order)
    about = (tried.account_id, tried.message, now, tried.hidden)
    explained = [explain(rule, *about) for rule in ordered] if detailed else []
    matched = None if outcome.matched is None else outcome.matched.name
    if as_json:
        row = {"message": tried.name, "matched": matched, "action": outcome.matched and outcome.matched.action_type}
        shadowed = {"shadowed": [rule.name for rule in outcome.shadowed]}
        details = {"rules": [_row(each, matched) for each in explained]} if detailed else {}
        show_json({**row, **shadowed, **details})
        return
    said = "no rule matches" if outcome.matched is None else f"{matched} → {outcome.matched.action_type}"
    typer.echo(f"{cell(tried.name)}: {cell(said)}")
    if detailed:
        show_list([_row(each, matched) for each in explained], COLUMNS, as_json=False)


def _row(explained: "Explained", matched: str | None) -> dict[str, object]:
    """Of several rules that match, the first decides."""
    is_first = explained.rule.name == matched
    result = "decides" if is_first else explained.result
    if explained.result == "matches" and not is_first:
        result = "matches in shadow" if explained.rule.shadow else "matches, but comes later"
    return {"rule": explained.rule.name, "result": result, "why": explained.why}


async def _rules(database: "Database", file: Path | None) -> "list[Rule]":
    """Those in use, or those of the file that are switched on."""
    from postroom.core.rules.documents import read_documents
    from postroom.store.engine.ids import new_id
    from postroom.store.rules import enabled_rules

    if file is None:
        return await database.run(enabled_rules())
    drafts = await placed(database, read_documents(read_text(file)))
    return [draft.as_rule(new_id()) for draft in drafts if draft.enabled]


async def _stored(database: "Database", given: str) -> Tried:
    from postroom.decide.engine import unknown_conditions
    from postroom.store.mail import load_message

    try:
        id = UUID(given)
    except ValueError:
        raise BadInput("--message", f"{given!r} is no id", "give the id of a message") from None
    found = await database.run(load_message(id))
    return Tried(str(found.id), found.account_id, found.facts, unknown_conditions(found))


def _in_files(path: Path, account_id: UUID | None) -> Iterator[Tried]:
    from postroom.core.mail.files import mail_in
    from postroom.core.mail.mime import parse_message

    for mail in mail_in(path):
        if mail.problem is not None:
            raise BadInput("MAIL", f"{mail.path}: {mail.problem}", "give another path")
        yield Tried(mail.path, account_id, _facts(parse_message(mail.raw)))


def _facts(parsed: "ParsedMessage") -> "MessageFacts":
    from postroom.core.mail.tiers import sender_address, values
    from postroom.core.rules.rule import MessageFacts, recipients

    subjects = values(parsed.headers, "subject")
    return MessageFacts(
        sender_address(parsed.headers),
        subjects[0] if subjects else "",
        parsed.headers,
        NEW_MAIL,
        parsed.text,
        bool(parsed.attachments),
        recipients(parsed.headers),
        _sent_at(values(parsed.headers, "date")),
    )


def _sent_at(dates: list[str]) -> datetime | None:
    from email.utils import parsedate_to_datetime

    try:
        sent = parsedate_to_datetime(dates[0])
    except (IndexError, ValueError, TypeError, OverflowError):
        return None
    return sent if sent.tzinfo is not None else sent.replace(tzinfo=UTC)
