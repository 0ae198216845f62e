"""For each writing verb of contacts, ingestion rules and connector requests: a database in which it has work to do."""

from datetime import timedelta
from typing import Any

from postroom.core.mail.contacts import Contact
from postroom.core.mail.ingestion import IngestionRule
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake import connector_requests, ingestion_rules
from postroom.store.intake.connector_requests import LeasedRequest, NewRequest, Reply
from postroom.store.mail import contacts
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

ENDPOINT = "gmail:user:ada@example.com"
SHOP = IngestionRule(10, "shop", "sender_domain_suffix", "skip", "shop.example")
LEASE = timedelta(seconds=60)


async def keep_contacts(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(contacts.note_correspondents(["mara@x.example"], setup.clock()))
    given = [Contact("mara@x.example", "Mara"), Contact("ivo@x.example", "Ivo")]
    return contacts.keep_contacts(given, "vcard", contacts.EVERY_MAILBOX, signed(), setup.clock.forward(60))


async def note_correspondents(setup: JobSetup) -> Transaction[Any]:
    return contacts.note_correspondents(["Mara <mara@x.example>", "ivo@x.example"], setup.clock(), ENDPOINT)


async def add_ingestion_rule(setup: JobSetup) -> Transaction[Any]:
    return ingestion_rules.add_ingestion_rule(SHOP, signed(), setup.clock())


async def remove_ingestion_rule(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await add_ingestion_rule(setup))
    return ingestion_rules.remove_ingestion_rule(SHOP.name, signed(), setup.clock())


async def restore_pack_rule(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(ingestion_rules.remove_ingestion_rule("list-id", signed(), setup.clock()))
    return ingestion_rules.restore_pack_rule("list-id", signed(), setup.clock())


async def ask_connector(setup: JobSetup) -> Transaction[Any]:
    """Beside one whose time is over."""
    await setup.database.run(connector_requests.ask_connector(asked(setup), setup.clock()))
    setup.clock.forward(600)
    return connector_requests.ask_connector(asked(setup), setup.clock())


def asked(setup: JobSetup, **changes: Any) -> NewRequest:
    request = NewRequest(new_id(), ENDPOINT, "sync_now", {}, setup.clock() + timedelta(minutes=5))
    return request._replace(**changes)


async def lease_requests(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(connector_requests.ask_connector(asked(setup), setup.clock()))
    return connector_requests.lease_requests(ENDPOINT, 10, new_id(), LEASE, setup.clock())


async def leased(setup: JobSetup) -> LeasedRequest:
    [request] = await setup.database.run(await lease_requests(setup))
    return request


async def give_back_requests(setup: JobSetup) -> Transaction[Any]:
    return connector_requests.give_back_requests(ENDPOINT, (await leased(setup)).lease_token)


async def end_request(setup: JobSetup) -> Transaction[Any]:
    request = await leased(setup)
    return connector_requests.end_request(
        request.id, ENDPOINT, request.lease_token, Reply({"ingested": 3}), setup.clock()
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
