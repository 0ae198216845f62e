"""Mail that only claims to be from a contact, from the mailbox to its tier, the facts of rules and the story."""

from pathlib import Path

import pytest

from postroom.core.mail.contacts import Contact
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.receiving_hosts import ReceivingHosts
from postroom.operations.mail.mail_ids import find_message
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import EVERY_MAILBOX, keep_contacts
from postroom.store.mail.mail import load_message
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.imap_server import ImapServer
from support.imap_setup import OWNER as IMAP_OWNER
from support.imap_setup import imap_setup
from support.mail import story_of
from support.product import raw_mail, running_product

IDA = "ida@lindqvist.example"
FAILED = "dkim=none; dmarc=fail (p=NONE dis=NONE) header.from=lindqvist.example"


async def test_a_contact_whose_authentication_failed_at_gmail_is_not_lifted(database: Database, tmp_path: Path) -> None:
    async with running_product(database, tmp_path) as product:
        signed = Signature(new_id(), "test", "admin")
        await database.run(keep_contacts([Contact(IDA, "Ida")], "vcard", EVERY_MAILBOX, signed, wall_clock()))
        await product.parts.contacts.refresh()
        results = {"Authentication_Results": f"mx.google.com; {FAILED}"}
        elsewhere = {"Authentication_Results": f"mx.evil.example; {FAILED}"}
        mail = {
            "honest": raw_mail("honest", sender=IDA),
            "elsewhere": raw_mail("elsewhere", sender=IDA, **elsewhere),
            "forged": raw_mail("forged", sender=IDA, **results),
            "two": raw_mail("two", sender=IDA, from_="evil@x.example").replace(b"from-:", b"From:"),
        }
        ids = {name: product.mailbox.deliver(raw).id for name, raw in mail.items()}
        await product.live.sync()
        rows = {row.subject: row for row in await product.settled(4)}
        assert {name: row.tier for name, row in rows.items()} == {
            "honest": "high_priority",
            "elsewhere": "high_priority",
            "forged": "interactive",
            "two": "interactive",
        }
        for name, is_contact in {"honest": True, "forged": False, "two": False}.items():
            message = await database.run(load_message(await find_message(database, ids[name])))
            assert message.facts.sender_in_contacts is is_contact, name
        story = [line.text for line in await story_of(database, ids["forged"])]
        assert (
            "It is from a contact's address, but authentication failed. So it does not count as mail from a contact."
            in story
        )


@pytest.mark.parametrize("given", [["mx.provider.example"], []], ids=["given", "learned"])
async def test_over_imap_the_receiving_host_is_given_or_learned_from_mail_to_oneself(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path, given: list[str]
) -> None:
    async with imap_setup(dovecot, database, clock, tmp_path) as setup:
        hosts = ReceivingHosts(given, tmp_path)
        knowledge = Knowledge([IMAP_OWNER], sent=setup.sent, contacts=lambda: frozenset({IDA}), hosts=hosts)
        connector = setup.connector(knowledge=knowledge)
        results = f"Authentication-Results: mx.provider.example; {FAILED}\r\n"

        async def tier_of(name: str) -> str:
            raw = raw_mail(name, sender=IDA, to=IMAP_OWNER, Message_ID=f"<{name}@x>")
            id = setup.beside.put(results.encode() + raw)
            assert await connector.sync() == 1
            return (await setup.waiting())[id]["control"]["policy_tier"]

        assert await tier_of("before") == ("interactive" if given else "high_priority"), "unknown is not failed"
        own = raw_mail("note", sender=IMAP_OWNER, to=IMAP_OWNER, Message_ID="<note@x>")
        setup.beside.put(own, "Sent")
        await connector.sync()
        setup.beside.put(b"Received: from here\r\nAuthentication-Results: mx.provider.example; dmarc=pass\r\n" + own)
        await connector.sync()
        assert await tier_of("after") == "interactive"
