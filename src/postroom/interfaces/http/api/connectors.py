"""Connectors: each mailbox and each source of events, whether it works, and what it brought and left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER_AGAIN, OPERATE, STEER
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import LONGEST_REASON, Arguments, Filter, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.operations.accounts.accounts import AccountSync, AccountView, pause_account, resume_account, sync_account
from postroom.operations.accounts.acting import begin_acting
from postroom.operations.connectors.connector_cards import ConnectorCard, ConnectorDetail, list_cards, load_connector
from postroom.operations.connectors.not_ingested import IngestRetry, check_message_ids, retry_ingest
from postroom.operations.overview.windows import DEFAULT_WINDOW, WindowName

CONNECTORS = Noun("Connectors")
MOST_RETRIED = 1_000


class WindowQuery(Arguments):
    window: WindowName = Field(DEFAULT_WINDOW, description="The window of the counts.")


class ConnectorPath(Arguments):
    type: Text = Field(max_length=100, description="The type of the connector, such as gmail.")
    identity: Text = Field(max_length=500, description="Its endpoint identity.")


class AccountBody(Arguments):
    account: Filter = Field(description="The address or the id of the account.")


class PauseAccountBody(AccountBody):
    reason: Text | None = Field(None, max_length=LONGEST_REASON, description="Why, for the audit log.")


class ActBody(AccountBody):
    since: datetime | None = Field(None, description="Act on mail since this time; now if omitted.")


class RetryBody(AccountBody):
    messages: list[Filter] = Field(
        default_factory=list, max_length=MOST_RETRIED, description="The mailbox's ids of messages; none for all."
    )


@dataclass(frozen=True, slots=True)
class ConnectorsAnswer:
    connectors: Sequence[ConnectorCard]


@dataclass(frozen=True, slots=True)
class ActAnswer:
    """An account that acts now. `messages` are decided again, and what follows belongs to the batch."""

    account: AccountView
    acts_from: datetime
    messages: int
    batch_id: UUID


@dataclass(frozen=True, slots=True)
class RetryAnswer:
    retries: Sequence[IngestRetry]


@CONNECTORS.get("/connectors")
async def read_connectors(call: Call) -> ConnectorsAnswer:
    """All connectors: those of accounts first, then the other sources of events."""
    return ConnectorsAnswer(await list_cards(call.database, call.clock))


@CONNECTORS.post("/connectors/sync", STEER, status=202)
async def sync_mailbox(call: Call, body: AccountBody) -> AccountSync:
    """Look for new mail and changed labels now. Safe to repeat."""
    return await sync_account(call.by(), body.account)


@CONNECTORS.post("/connectors/pause", OPERATE)
async def pause_mailbox(call: Call, body: PauseAccountBody) -> AccountView:
    """Pause an account: nothing is read from it or changed in it. Safe to repeat."""
    return await pause_account(call.by(body.reason), body.account)


@CONNECTORS.post("/connectors/resume", ANSWER_AGAIN)
async def resume_mailbox(call: Call, body: AccountBody) -> AccountView:
    """Use an account again. Safe to repeat."""
    return await resume_account(call.by(), body.account)


@CONNECTORS.post("/connectors/act", ANSWER_AGAIN)
async def act_on_mailbox(call: Call, body: ActBody) -> ActAnswer:
    """Act on an account's mail from a time on. Mail since then that nothing was done with is decided again. Safe to
    repeat.
    """
    since = body.since or call.clock()
    account, (messages, batch_id) = await begin_acting(call.by(), body.account, since)
    return ActAnswer(account, account.acts_from or since, messages, batch_id)


@CONNECTORS.post("/connectors/retry", OPERATE, status=202)
async def retry_left_out(call: Call, body: RetryBody) -> RetryAnswer:
    """Fetch once more mail that was refused or set aside. Safe to repeat: `asked_before` names earlier requests."""
    check_message_ids(body.messages)
    folder = call.parts.connector_limits.data_dir
    return RetryAnswer(await retry_ingest(call.by(), folder, body.account, body.messages))


@CONNECTORS.get("/connectors/{type}/{identity:path}")
async def read_connector(call: Call, path: ConnectorPath, query: WindowQuery) -> ConnectorDetail:
    """One connector: its health, what it delivered in the window, its quota, and what it left out."""
    limits = call.parts.connector_limits
    return await load_connector(call.database, path.type, path.identity, query.window, limits, call.clock)
