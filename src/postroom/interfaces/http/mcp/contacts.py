"""The tools for contacts and filters, by which connectors sort mail and decide how much of it to ingest."""

from typing import NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from postroom.core.access import STEER
from postroom.core.bounds import own_identity
from postroom.core.errors import BadInput
from postroom.core.mail.contacts import LONGEST_NAME, Contact, contact_address
from postroom.core.mail.ingestion import Extent, as_data
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import ADDS_ONCE, READS, Arguments, Call, NoArguments, Text, tool
from postroom.operations.accounts.contacts import keep_contacts
from postroom.operations.caller import Caller
from postroom.operations.connectors.filters import list_filters
from postroom.store.engine.codecs import time_text
from postroom.store.intake.ingestion_rules import version_of
from postroom.store.mail.contacts import EVERY_MAILBOX, export_contacts, note_correspondents

MOST_CONTACTS = 1000
MOST_EXPORTED = 5000


class ContactsExportArguments(Arguments):
    cursor: Text = Field("", max_length=1000, description="next_cursor of the page before; empty for the first page.")
    max: int = Field(
        MOST_EXPORTED, ge=1, le=MOST_EXPORTED, description=f"How many addresses at most, 1 to {MOST_EXPORTED}."
    )


class ContactsExportAnswer(TypedDict):
    """`next_cursor` is null on the last page."""

    generated_at: str
    addresses: list[str]
    next_cursor: str | None


@tool("contacts.export", "Get the known contacts", READS, roles={Role.CONNECTOR})
async def contacts_export(call: Call, arguments: ContactsExportArguments) -> ContactsExportAnswer:
    """Lists the addresses of everyone whom the user of this connector's mailbox knows, in pages: call again with
    next_cursor as cursor until it is null. Fetch them about every 15 minutes, and do not use a list that is older than
    an hour.
    """
    generated_at, own = call.services.clock(), own_identity(call.principal)
    # One row more than requested, to know whether another page follows.
    found = await call.services.database.run(export_contacts(own, arguments.cursor, arguments.max + 1))
    page = found[: arguments.max]
    return {
        "generated_at": time_text(generated_at),
        "addresses": page,
        "next_cursor": page[-1] if len(found) > len(page) else None,
    }


class ContactForm(Arguments):
    address: Text = Field(min_length=3, max_length=500, description="The mail address, in any form.")
    name: Text = Field("", max_length=200, description="The person's name, if known.")


class ContactsAddArguments(Arguments):
    contacts: list[ContactForm] = Field(
        min_length=1, max_length=MOST_CONTACTS, description=f"1 to {MOST_CONTACTS} people whom the user knows."
    )
    endpoint_identity: Text | None = Field(
        None, min_length=1, max_length=500, description="The mailbox for which they count; without it, all mailboxes."
    )


class ContactsAddAnswer(TypedDict):
    added: int
    updated: int
    unchanged: int


@tool("contacts.add", "Add known contacts", ADDS_ONCE, roles=STEER.tokens)
async def contacts_add(call: Call, arguments: ContactsAddArguments) -> ContactsAddAnswer:
    """Adds people whom the user knows; their mail gets the tier high_priority within 15 minutes. Existing contacts are
    updated. One invalid address refuses the whole call.
    """
    contacts = [_contact(index, each) for index, each in enumerate(arguments.contacts)]
    identity, services = arguments.endpoint_identity or EVERY_MAILBOX, call.services
    kept = await keep_contacts(Caller(services.database, call.signed(), services.clock), contacts, "mcp", identity)
    return {"added": kept.added, "updated": kept.updated, "unchanged": kept.unchanged}


def _contact(index: int, given: ContactForm) -> Contact:
    address = contact_address(given.address)
    if address is None:
        problem = f"{given.address[:100]!r} is not an address"
        raise BadInput(f"contacts.{index}.address", problem, "give one such as mara@lindqvist.example")
    return Contact(address, " ".join(given.name.split())[:LONGEST_NAME])


class WrittenToArguments(Arguments):
    addresses: list[Text] = Field(
        min_length=1, max_length=MOST_CONTACTS, description=f"1 to {MOST_CONTACTS} addresses, in any form."
    )


@tool("contacts.written_to", "Report whom the user has written to", ADDS_ONCE, roles={Role.CONNECTOR})
async def written_to(call: Call, arguments: WrittenToArguments) -> ContactsAddAnswer:
    """Reports the addresses to which the user of this connector's mailbox has sent mail: they become contacts of this
    mailbox. Entries of the address book are not changed; invalid addresses are ignored. Reporting the same again is
    safe.
    """
    noting = note_correspondents(arguments.addresses, call.services.clock(), own_identity(call.principal))
    kept = await call.services.database.run(noting)
    return {"added": kept.added, "updated": kept.updated, "unchanged": kept.unchanged}


class FilterForm(TypedDict):
    number: int
    name: str
    kind: str
    tier: Extent
    value: NotRequired[str]
    header: NotRequired[str]


class FiltersExportAnswer(TypedDict):
    """`version` changes whenever the rules do."""

    generated_at: str
    version: str
    rules: list[FilterForm]


@tool("filters.export", "Get the ingestion rules", READS, roles={Role.CONNECTOR})
async def filters_export(call: Call, arguments: NoArguments) -> FiltersExportAnswer:
    """Lists the rules that say how much of a message is ingested, in the order in which they are tried: the first match
    decides, and a message without a match is ingested in full. version changes whenever the rules do.
    """
    generated_at = call.services.clock()
    rules = [view.rule for view in await list_filters(call.services.database) if view.enabled]
    return {
        "generated_at": time_text(generated_at),
        "version": version_of(rules),
        "rules": [cast("FilterForm", as_data(rule)) for rule in rules],
    }


TOOLS = (contacts_export, contacts_add, written_to, filters_export)
