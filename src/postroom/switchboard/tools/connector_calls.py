"""The tools for contacts, filters and requests. A connector is served for its own endpoint only."""

from datetime import timedelta
from typing import cast

from postroom.accounts.mailbox_requests import expires_in_s
from postroom.core.errors import BadInput
from postroom.core.mail.contacts import LONGEST_NAME, Contact, contact_address
from postroom.core.mail.ingestion import as_data
from postroom.core.mail.mailbox_requests import checked_arguments
from postroom.manage.audit import signature
from postroom.manage.contacts import keep_contacts
from postroom.manage.filters import list_filters
from postroom.store.connector_requests import LeasedRequest, Reply
from postroom.store.contacts import EVERY_MAILBOX, export_contacts, note_correspondents
from postroom.store.engine.codecs import time_text
from postroom.store.ingestion_rules import version_of
from postroom.switchboard.access import bound_identity
from postroom.switchboard.problems import AccessRefused
from postroom.switchboard.tools import connector_schemas as forms
from postroom.switchboard.tools.ingest_calls import Call, caller_left
from postroom.switchboard.tools.ingest_schemas import NoArguments


async def contacts_export(call: Call, arguments: forms.ContactsExportArguments) -> forms.ContactsExportAnswer:
    """Return one page. Reads one row more than requested, to know whether another page follows."""
    generated_at = call.services.clock()
    found = await call.services.database.run(export_contacts(_own(call), arguments.cursor, arguments.max + 1))
    page = found[: arguments.max]
    return {
        "generated_at": time_text(generated_at),
        "addresses": page,
        "next_cursor": page[-1] if len(found) > len(page) else None,
    }


async def contacts_add(call: Call, arguments: forms.ContactsAddArguments) -> forms.ContactsAddAnswer:
    contacts = [_contact(index, each) for index, each in enumerate(arguments.contacts)]
    services, signed = call.services, signature(call.principal.actor, call.principal.role)
    identity = arguments.endpoint_identity or EVERY_MAILBOX
    kept = await keep_contacts(services.database, contacts, "mcp", identity, signed, services.clock)
    return {"added": kept.added, "updated": kept.updated, "unchanged": kept.unchanged}


async def written_to(call: Call, arguments: forms.WrittenToArguments) -> forms.ContactsAddAnswer:
    noting = note_correspondents(arguments.addresses, call.services.clock(), _own(call))
    kept = await call.services.database.run(noting)
    return {"added": kept.added, "updated": kept.updated, "unchanged": kept.unchanged}


def _contact(index: int, given: forms.ContactForm) -> Contact:
    address = contact_address(given.address)
    if address is None:
        problem = f"{given.address[:100]!r} is not an address"
        raise BadInput(f"contacts.{index}.address", problem, "give one such as mara@lindqvist.example")
    return Contact(address, " ".join(given.name.split())[:LONGEST_NAME])


async def filters_export(call: Call, arguments: NoArguments) -> forms.FiltersExportAnswer:
    generated_at = call.services.clock()
    rules = [view.rule for view in await list_filters(call.services.database) if view.enabled]
    return {
        "generated_at": time_text(generated_at),
        "version": version_of(rules),
        "rules": [cast("forms.FilterForm", as_data(rule)) for rule in rules],
    }


async def requests(call: Call, arguments: forms.RequestsArguments) -> forms.RequestsAnswer:
    wait = timedelta(seconds=arguments.wait_s)
    async with caller_left(call, wait) as left:
        leased = await call.services.requests.next(_own(call), arguments.max, wait, left)
    return {"requests": [_leased(call, each) for each in leased]}


def _leased(call: Call, request: LeasedRequest) -> forms.LeasedRequestForm:
    return {
        "request_id": str(request.id),
        "lease_token": str(request.lease_token),
        "lease_until": time_text(request.lease_until),
        "expires_in_s": expires_in_s(request, call.services.clock()),
        "kind": request.kind,
        "arguments": request.arguments,
    }


async def reply(call: Call, arguments: forms.ReplyArguments) -> forms.ReplyAnswer:
    given = Reply(arguments.result, arguments.error)
    await call.services.requests.reply(arguments.request_id, _own(call), arguments.lease_token, given)
    return {"status": "recorded"}


async def request(call: Call, arguments: forms.RequestArguments) -> forms.RequestAnswer:
    wait, given = timedelta(seconds=arguments.wait_s), arguments.model_dump(include={"message_ids", "query", "max"})
    asked = checked_arguments(arguments.kind, {name: value for name, value in given.items() if value is not None})
    async with caller_left(call, wait) as left:
        view = await call.services.requests.ask(arguments.endpoint_identity, arguments.kind, asked, wait, left)
    counts = {name: value for name, value in (view.result or {}).items() if isinstance(value, int | float)}
    return {
        "request_id": str(view.id),
        "state": view.state,
        "result": None if view.result is None else counts,
        "untrusted": {"result": view.result, "error": view.error},
    }


def _own(call: Call) -> str:
    """The endpoint to which the caller is bound; it cannot name another."""
    identity = bound_identity(call.principal)
    if identity is None:
        raise AccessRefused(
            "token", "this token is not bound to an endpoint", "use the token of a connector", "identity"
        )
    return identity
