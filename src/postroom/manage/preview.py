"""A preview of what Postroom would do with mail in files. Nothing is changed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.mail.categories import categories_of
from postroom.core.mail.files import MailFile, mail_in
from postroom.core.mail.headers import head_of, read_head, values
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionFacts, IngestionPolicy, IngestionRule
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known, assign_tier, message_ids, sender_address
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE
from postroom.store.ingestion_rules import list_ingestion_rules

Progress = Callable[[int], None]


class Previewed(NamedTuple):
    """The preview of one message."""

    path: str
    policy_tier: str
    assignment_rule: str
    ingestion_tier: str
    categories: list[str]
    problem: str | None


def known_from_files(path: Path, users: Sequence[str], contacts: frozenset[str], progress: Progress) -> Known:
    """Collect the user's addresses, contacts, and the ids of the mail in these files that the user sent."""
    mine = frozenset(_address(each) for each in users)
    return Known(mine, contacts, frozenset(_sent_ids(path, mine, progress)))


def preview_message(mail: MailFile, known: Known, policy: IngestionPolicy = DEFAULT_POLICY) -> Previewed:
    """Preview one message; without a policy, by the built-in filters."""
    parsed = parse_message(mail.raw)
    facts = IngestionFacts.of(parsed)
    tier, rule = assign_tier(parsed.headers, known)
    problem = mail.problem or "; ".join(parsed.problems) or None
    return Previewed(mail.path, tier, rule, policy.decide(facts).tier, categories_of(facts, known), problem)


def check_database(settings: Settings) -> None:
    """Raise BadInput if there is no database: a preview must not create one."""
    if settings.database_url is None and not (settings.data_dir / FILE).exists():
        remedy = "name the folder with --data-dir, run `postroom migrate` first, or omit --filters"
        raise BadInput("--filters", f"there is no database in {settings.data_dir}", remedy)


async def own_filters(database: Database) -> list[IngestionRule]:
    """Return the filters in use, the user's own and the built-in ones."""
    return [view.rule for view in await database.run(list_ingestion_rules()) if view.enabled]


def _address(given: str) -> str:
    found = canonical(given)
    if found is None:
        raise BadInput("--user", f"{given!r} is not an address", "give yours, such as mara@lindqvist.example")
    return found


def _sent_ids(path: Path, mine: frozenset[str], progress: Progress) -> Iterator[str]:
    """Read the headers in a first pass and yield the ids of the user's own mail."""
    for number, mail in enumerate(mail_in(path), 1):
        headers, _ = read_head(head_of(mail.raw))
        if sender_address(headers) in mine:
            for value in values(headers, "message-id"):
                yield from message_ids(value)
        progress(number)
