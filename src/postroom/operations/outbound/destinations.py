"""Destinations of outgoing mail: pause and resume them, and the keys that sign mail for a domain."""

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.access import ADMINISTER, ANSWER_AGAIN, OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.outbound.destinations import SigningAlgorithm
from postroom.core.views import Done
from postroom.mailboxes.accounts.sealing import with_newest_key
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, command, form, post
from postroom.operations.outbound.tenants import checked_domain
from postroom.store.accounts.secret_keys import list_key_uses
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.outbound import destinations, dkim_keys
from postroom.store.outbound.destinations import DestinationPause
from postroom.vault.sealing import Sealed, Vault

RSA_BITS = 2048
_SELECTOR = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


Destination = Annotated[str, Argument("The domain of the recipients, or the name of the smart host.")]
Domain = Annotated[str, Argument("The domain in From, such as example.com.")]
Selector = Annotated[str, Argument("The name of the key, such as s1.")]
Algorithm = Annotated[SigningAlgorithm, Argument("rsa-sha256, which everybody checks, or ed25519-sha256.")]


@OUTBOUND.operation(READ, command("destination list", "destination", "reason", "paused_by", "created_at"))
async def list_destination_pauses(database: Database, /) -> list[DestinationPause]:
    """List the destinations that are paused."""
    return await database.run(destinations.list_destination_pauses())


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/destinations/{destination}/pause"),
    form("/outbound/destinations/pause", "Nothing is sent to {destination} until it is resumed."),
    command("destination pause {destination}"),
    signs=True,
)
async def pause_destination(by: Caller, /, destination: Destination) -> Done:
    """Send nothing to a destination; mail that waits is kept. Safe to repeat."""
    await prepare(by.database)
    await by.run(destinations.pause_destination(destination, by.signature, by.clock()))
    return Done("Nothing is sent there until you resume it.")


@OUTBOUND.operation(
    ANSWER_AGAIN,
    post("/outbound/destinations/{destination}/resume"),
    form("/outbound/destinations/resume", "Mail to {destination} goes on within half a minute."),
    command("destination resume {destination}"),
)
async def resume_destination(by: Caller, /, destination: Destination) -> Done:
    """Send to a destination again. Mail that was held is tried within half a minute."""
    await by.run(destinations.resume_destination(destination, by.signature, by.clock()))
    return Done("Mail to it is tried again within half a minute.")


@dataclass(frozen=True, slots=True)
class DkimRecord:
    """A key that signs mail of a domain, and the record that publishes it. The private key is never shown."""

    domain: str
    selector: str
    algorithm: SigningAlgorithm
    created_at: datetime
    name: str
    record: str


class RemovedKey(NamedTuple):
    """The name of its record, which stays in the DNS for as long as mail that it has signed is on its way."""

    id: str


@OUTBOUND.operation(READ, command("dkim list", "domain", "selector", "algorithm", "created_at", "name", "record"))
async def list_dkim(database: Database, /) -> list[DkimRecord]:
    """List the keys, with their records."""
    return [_record(each) for each in await database.run(dkim_keys.list_dkim_keys())]


@OUTBOUND.operation(ADMINISTER, command("dkim add {domain} {selector}", line='{name}. IN TXT "{record}"'))
async def add_dkim(
    by: Caller, vault: Vault, /, domain: Domain, selector: Selector, algorithm: Algorithm = "rsa-sha256"
) -> DkimRecord:
    """Make a key, and print the record that belongs in the DNS. Mail is signed with the key from then on."""
    named, selector = checked_domain(domain), selector.strip().lower()
    if not _SELECTOR.fullmatch(selector):
        raise BadInput("selector", f"{selector[:80]!r} is no selector", "use letters, digits and hyphens, such as s1")
    await prepare(by.database)
    uses = await by.run(list_key_uses())
    vault.prepare([use.id for use in uses if use.secrets], by.clock())
    private, public = _new_key(algorithm)
    id, secret = new_id(), base64.b64encode(private).decode()
    await with_newest_key(
        by.database,
        lambda: dkim_keys.add_dkim_key(
            id, named, selector, algorithm, public, _seal(vault, id, secret), by.signature, by.clock()
        ),
    )
    (found,) = [each for each in await list_dkim(by.database) if (each.domain, each.selector) == (named, selector)]
    return found


@OUTBOUND.operation(ADMINISTER, command("dkim remove {domain} {selector}", outcome=("id", "removed")))
async def remove_dkim(by: Caller, /, domain: Domain, selector: Selector) -> RemovedKey:
    """Forget a key: mail is signed with the other keys of the domain, or not at all."""
    await by.run(dkim_keys.remove_dkim_key(checked_domain(domain), selector.lower(), by.signature, by.clock()))
    return RemovedKey(f"{selector}._domainkey.{domain}")


def _seal(vault: Vault, id: UUID, secret: str) -> Sealed:
    return vault.seal(id, dkim_keys.FIELD, secret)


def _record(key: dkim_keys.DkimKey) -> DkimRecord:
    kind = "rsa" if key.algorithm == "rsa-sha256" else "ed25519"
    name = f"{key.selector}._domainkey.{key.domain}"
    text = f"v=DKIM1; k={kind}; p={key.public_key}"
    return DkimRecord(key.domain, key.selector, key.algorithm, key.created_at, name, text)


def _new_key(algorithm: SigningAlgorithm) -> tuple[bytes, str]:
    """A new private key as the signer reads it, and the public one in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    if algorithm == "ed25519-sha256":
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return key.private_bytes_raw(), base64.b64encode(public).decode()
    key = generate_private_key(65537, RSA_BITS)
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, base64.b64encode(public).decode()
