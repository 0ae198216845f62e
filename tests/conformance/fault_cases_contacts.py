"""For each writing verb of contacts, ingestion rules and connector requests: a database in which it has work to do."""

from datetime import timedelta
from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_registry import signed
from postroom.core.mail.contacts import Contact
from postroom.core.mail.ingestion import IngestionRule
from postroom.store import connector_requests, contacts, ingestion_rules
from postroom.store.connector_requests import LeasedRequest, NewRequest, Reply
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

ENDPOINT = "gmail:user:ada@example.com"
SHOP = IngestionRule(10, "shop", "sender_domain_suffix", "skip", "shop.example")
LEASE = timedelta(seconds=60)


async def keep_contacts(desk: Desk) -> Transaction[Any]:
    await desk.database.run(contacts.note_correspondents(["mara@x.example"], desk.clock()))
    given = [Contact("mara@x.example", "Mara"), Contact("ivo@x.example", "Ivo")]
    return contacts.keep_contacts(given, "vcard", contacts.EVERY_MAILBOX, signed(), desk.clock.forward(60))


async def note_correspondents(desk: Desk) -> Transaction[Any]:
    return contacts.note_correspondents(["Mara <mara@x.example>", "ivo@x.example"], desk.clock(), ENDPOINT)


async def add_ingestion_rule(desk: Desk) -> Transaction[Any]:
    return ingestion_rules.add_ingestion_rule(SHOP, signed(), desk.clock())


async def remove_ingestion_rule(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await add_ingestion_rule(desk))
    return ingestion_rules.remove_ingestion_rule(SHOP.name, signed(), desk.clock())


async def restore_pack_rule(desk: Desk) -> Transaction[Any]:
    await desk.database.run(ingestion_rules.remove_ingestion_rule("list-id", signed(), desk.clock()))
    return ingestion_rules.restore_pack_rule("list-id", signed(), desk.clock())


async def ask_connector(desk: Desk) -> Transaction[Any]:
    """Beside one whose time is over."""
    await desk.database.run(connector_requests.ask_connector(asked(desk), desk.clock()))
    desk.clock.forward(600)
    return connector_requests.ask_connector(asked(desk), desk.clock())


def asked(desk: Desk, **changes: Any) -> NewRequest:
    request = NewRequest(new_id(), ENDPOINT, "sync_now", {}, desk.clock() + timedelta(minutes=5))
    return request._replace(**changes)


async def lease_requests(desk: Desk) -> Transaction[Any]:
    await desk.database.run(connector_requests.ask_connector(asked(desk), desk.clock()))
    return connector_requests.lease_requests(ENDPOINT, 10, new_id(), LEASE, desk.clock())


async def leased(desk: Desk) -> LeasedRequest:
    [request] = await desk.database.run(await lease_requests(desk))
    return request


async def give_back_requests(desk: Desk) -> Transaction[Any]:
    return connector_requests.give_back_requests(ENDPOINT, (await leased(desk)).lease_token)


async def end_request(desk: Desk) -> Transaction[Any]:
    request = await leased(desk)
    return connector_requests.end_request(
        request.id, ENDPOINT, request.lease_token, Reply({"ingested": 3}), desk.clock()
    )


CASES: list[Case] = [
    keep_contacts,
    note_correspondents,
    add_ingestion_rule,
    remove_ingestion_rule,
    restore_pack_rule,
    ask_connector,
    lease_requests,
    give_back_requests,
    end_request,
]
