"""What the commands that change rules, directions and model rules share: the database, accounts, files, labels."""

import json
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from postroom.cli.application import application_of
from postroom.cli.options import settings_for
from postroom.cli.output import cell
from postroom.cli.running import with_database
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.core.rules.draft import RuleDraft
    from postroom.store.engine.database import Database

T = TypeVar("T")
LARGEST_FILE = 8 * 1024 * 1024 + 1

Scope = Annotated[str | None, typer.Option("--scope", help="Whose mail it is for: global, account, domain or sender.")]
ScopeRef = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="WHOM", help="The account (id or address), domain or sender that the scope is about."
    ),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Take rules that look at labels no mailbox has yet.")
]


def changing(context: typer.Context, data_dir: Path | None, use: Callable[["Database"], Coroutine[Any, Any, T]]) -> T:
    """A new installation gets its schema here, so that rules can be there before the first mail."""

    async def changed(database: "Database") -> T:
        from postroom.store.engine.migrate import applied_migrations, migrate

        if not await database.run(applied_migrations()):
            await migrate(database)
        return await use(database)

    return with_database(application_of(context), settings_for(data_dir), changed)


async def scope_ref(database: "Database", scope: str, given: str | None) -> str | None:
    """What the scope is about, as it is kept: an account by its id."""
    from postroom.manage.accounts import find_account

    return str((await find_account(database, given)).id) if scope == "account" and given else given


async def placed(database: "Database", drafts: "Iterable[RuleDraft]") -> "list[RuleDraft]":
    """The drafts with the accounts that they name found, and what is compared in the form in which it is compared."""
    from dataclasses import replace

    from postroom.core.rules.rule import read_scope

    found: list[RuleDraft] = []
    for draft in drafts:
        ref = await scope_ref(database, draft.scope, draft.scope_ref)
        key = read_scope(draft.scope, ref).key
        found.append(draft if key is None else replace(draft, scope_ref=key[1]))
    return found


async def known_labels(database: "Database") -> frozenset[str] | None:
    """Ids and casefolded names of all labels; None while no mailbox has told of any."""
    from postroom.store.labels import list_all_labels

    labels = await database.run(list_all_labels())
    ids = {each.provider_label_id for each in labels}
    return frozenset(ids | {each.name.casefold() for each in labels}) if labels else None


def refuse_unknown_labels(drafts: "Iterable[RuleDraft]", known: frozenset[str] | None) -> None:
    from postroom.core.rules.draft import unknown_labels

    for draft in drafts:
        missing = sorted(unknown_labels(draft, known)) if known is not None else []
        if missing:
            problem = f"looks at the label {missing[0]!r}, which no mailbox has"
            remedy = "see `postroom labels list`; or take it all the same with --allow-missing"
            raise BadInput(f"rule {draft.name}", problem, remedy)


def tell_new_labels(drafts: "Iterable[RuleDraft]", known: frozenset[str] | None) -> None:
    """A label that is to be applied is made when it is first needed: no error, but worth a word."""
    for draft in drafts:
        label = str(draft.parameters.get("label"))
        is_new = known is not None and label not in known and label.casefold() not in known
        if draft.action_type == "apply_label" and is_new:
            typer.echo(
                f"{cell(draft.name)}: the label {cell(label)} is not there yet; it is made when needed", err=True
            )


def read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput("FILE", f"{str(path)!r} cannot be read ({reason})", "give another file") from None


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput("FILE", f"{str(path)!r} is not UTF-8", "save it as UTF-8") from None


def json_option(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(option, "is no JSON", """write it as '{"sender_domain": "shop.example"}'""") from None


def parameters_of(given: list[str]) -> dict[str, Any]:
    """`label=Receipts amount=3`; a name that comes twice makes a list."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise BadInput("--param", f"{each!r} is not NAME=VALUE", "write it as label=Receipts")
        value: Any = int(text) if text.isascii() and text.isdigit() and len(text) < 10 and name == "amount" else text
        before = found.get(name)
        match before:
            case None:
                found[name] = value
            case list():
                found[name] = [*before, value]
            case _:
                found[name] = [before, value]
    return found
