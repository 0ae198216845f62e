"""The keys that sign mail of a domain (DKIM). The private part is sealed; the public part stands in the DNS."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from postroom.core.errors import Conflict, NotFound
from postroom.core.outbound.destinations import SigningAlgorithm
from postroom.store.accounts.secret_keys import using_key
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.vault.sealing import Sealed

FIELD = "dkim"


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A key of a domain. `public_key` is base64, as the DNS record has it."""

    id: UUID
    domain: str
    selector: str
    algorithm: SigningAlgorithm
    public_key: str
    created_at: datetime
    key_id: str = field(repr=False)
    sealed: str = field(repr=False)


@transaction
def add_dkim_key(
    id: UUID,
    domain: str,
    selector: str,
    algorithm: SigningAlgorithm,
    public_key: str,
    sealed: Sealed,
    signed: Signature,
    now: datetime,
) -> Script[None]:
    """Keep the key: mail of the domain is signed with it from now on."""
    yield from using_key(sealed.key_id, now)
    if not (yield sql("insert_dkim_key", id, domain, selector, algorithm, public_key, *sealed, now)):
        raise Conflict("selector", f"{domain} has a key {selector} already", "choose another selector")
    after = {"domain": domain, "selector": selector, "algorithm": algorithm}
    yield from auditing(signed.under("dkim.add", "dkim_key", str(id), after=after), now)


@transaction
def remove_dkim_key(domain: str, selector: str, signed: Signature, now: datetime) -> Script[None]:
    """Forget the key. Mail of the domain is signed with its other keys, or not at all."""
    rows = yield sql("delete_dkim_key", domain, selector)
    if not rows:
        raise NotFound(f"{domain} has no key {selector}; `postroom dkim list` shows them")
    entry = signed.under("dkim.remove", "dkim_key", str(rows[0][0]), before={"domain": domain, "selector": selector})
    yield from auditing(entry, now)


@query
def list_dkim_keys(domain: str | None = None) -> Script[list[DkimKey]]:
    """The keys of a domain, or of all, oldest first within a domain."""
    return read_rows(DkimKey, (yield sql("select_dkim_keys", domain)))
