"""Contacts and filters on their way from the store to a connector, over HTTP and in memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.core.errors import Refused
from postroom.core.mail.contacts import Contact
from postroom.core.mail.ingestion import BULK_PACK, DEFAULT_POLICY, IngestionRule
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.contact_cache import ContactCache
from postroom.mailboxes.following.filter_cache import FilterCache
from postroom.mailboxes.following.reports import TakesCorrespondents
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_at, switchboard_within
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.ingestion_rules import add_ingestion_rule, remove_ingestion_rule, version_of
from postroom.store.mail.contacts import EVERY_MAILBOX, keep_contacts, list_contacts
from postroom.store.people.audit import Signature, list_audit
from support.clocks import ManualClock
from support.switchboard import served, services_on

ENDPOINT = "gmail:user:ada@example.com"
SHOP = IngestionRule(10, "shop", "header_contains", "skip", "shöp", "x-mailer")


def signed() -> Signature:
    return Signature(new_id(), "cli:ada", "admin")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """SQLite: what this is about lies between the connector and the switchboard."""
    opened = await open_database(tmp_path, None)
    yield opened
    await opened.close()


@pytest.fixture
def services(database: Database, clock: ManualClock) -> Services:
    return services_on(database, clock)


@pytest.fixture(params=["http", "in memory"])
async def switchboard(request: pytest.FixtureRequest, services: Services) -> AsyncIterator[McpSwitchboard]:
    if request.param == "in memory":
        yield switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
        return
    async with served(services) as running:
        token = await running.token("connector", ENDPOINT)
        async with switchboard_at(f"{running.address}/mcp", token) as client:
            yield client


async def test_every_contact_arrives_however_many_pages_it_takes(
    switchboard: McpSwitchboard, database: Database, clock: ManualClock, tmp_path: Path
):
    many = [Contact(f"{number}@x.example", "") for number in range(5000)]
    for mailbox in (EVERY_MAILBOX, ENDPOINT):
        await database.run(keep_contacts(many, "csv", mailbox, signed(), clock()))
    await database.run(keep_contacts([Contact("mära@x.example", "Mära")], "csv", ENDPOINT, signed(), clock()))
    first = await switchboard.contacts("")
    assert (len(first.addresses), first.next_cursor, first.generated_at) == (5000, first.addresses[-1], clock())
    cache = ContactCache(tmp_path / "cache" / "contacts.json", switchboard, clock)
    await cache.refresh()
    assert cache.addresses() == {each.address for each in many} | {"mära@x.example"}


async def test_a_full_last_page_is_the_last(switchboard: McpSwitchboard, database: Database, clock: ManualClock):
    many = [Contact(f"{number}@x.example", "") for number in range(5000)]
    await database.run(keep_contacts(many, "csv", EVERY_MAILBOX, signed(), clock()))
    assert (await switchboard.contacts("")).next_cursor is None


async def test_people_the_user_has_written_to_become_contacts_of_that_mailbox(
    switchboard: McpSwitchboard, database: Database
):
    assert isinstance(switchboard, TakesCorrespondents)
    await switchboard.correspondents(["Mara <no form of an address>", "Mara@X.Example", "mara@x.example"])
    await switchboard.correspondents([])
    [found] = await database.run(list_contacts(10))
    assert (found.address, found.source, found.endpoint_identity) == ("mara@x.example", "sent", ENDPOINT)
    assert (await switchboard.contacts("")).addresses == ("mara@x.example",)
    assert await database.run(list_audit(10, action="contacts.add")) == []


async def test_rules_arrive_as_they_are_kept_and_change_when_they_do(
    switchboard: McpSwitchboard, database: Database, clock: ManualClock, tmp_path: Path
):
    cache = FilterCache(tmp_path / "cache" / "filters.json", switchboard)
    await cache.refresh()
    assert (cache.policy().rules, cache.version) == (DEFAULT_POLICY.rules, version_of(BULK_PACK))
    await database.run(add_ingestion_rule(SHOP, signed(), clock()))
    await database.run(remove_ingestion_rule("list-id", signed(), clock()))
    await cache.refresh()
    assert cache.policy().rules == (SHOP, *(rule for rule in BULK_PACK if rule.name != "list-id"))
    assert FilterCache(tmp_path / "cache" / "filters.json", switchboard).version == cache.version


async def test_only_a_connector_is_reported(services: Services):
    switchboard = switchboard_within(build_server(services, Principal(Role.AGENT)))
    for call in (switchboard.contacts(""), switchboard.filters(), switchboard.correspondents(["a@b.example"])):
        with pytest.raises(Refused):
            await call


async def test_contacts_are_added_by_hand_and_a_wrong_one_refuses_all(
    services: Services, database: Database, clock: ManualClock
):
    async with served(services) as running, running.client(await running.token("admin"), "2026-07-28") as admin:
        wrong = [{"address": "uta@x.example"}, {"address": "mara"}]
        refused = await admin.call_tool("contacts.add", {"contacts": wrong})
        assert refused.structured_content["field"] == "contacts.1.address"
        assert await database.run(list_contacts(10)) == []
        given = {"contacts": [{"address": "M <Mara@X.example>", "name": " Mara \n L. "}], "endpoint_identity": ENDPOINT}
        assert (await admin.call_tool("contacts.add", given)).structured_content == {
            "added": 1,
            "updated": 0,
            "unchanged": 0,
        }
    [found] = await database.run(list_contacts(10))
    assert (found.address, found.name, found.source) == ("mara@x.example", "Mara L.", "mcp")
    [entry] = await database.run(list_audit(10, action="contacts.add"))
    assert (entry.object_id, entry.actor[:6]) == (ENDPOINT, "token:")
