"""Searches in mailboxes that ingest what they find: who made them, and which messages are stored since."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.people.audit import Signature, auditing

HOUR = timedelta(hours=1)


@transaction
def begin_mailbox_search(
    account_id: UUID, most: int, signed: Signature, now: datetime, hourly_cap: int | None = None
) -> Script[None]:
    """Audit that somebody searches a mailbox, without the query. Raises BadInput if they have searched as often within
    the hour as the cap allows.
    """
    if hourly_cap is not None:
        yield sql("lock_asker", signed.actor)
        if (yield sql("count_mailbox_searches", signed.actor, now - HOUR))[0][0] >= hourly_cap:
            problem = f"comes after {hourly_cap} searches within the hour, which is the cap for an agent"
            raise BadInput("query", problem, "wait, or use mail.search, which searches what is stored")
    entry = signed.under("mailbox.search", "account", str(account_id), after={"max_results": most})
    yield from auditing(entry, now)


@query
def stored_messages(account_id: UUID, provider_ids: Collection[str]) -> Script[dict[str, UUID]]:
    """The stored messages of an account among these, by the provider's id."""
    found: dict[str, UUID] = {}
    for id in provider_ids:
        for (message_id,) in (yield sql("select_message_id", account_id, id)):
            found[id] = as_uuid(message_id)
    return found
