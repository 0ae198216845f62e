"""Connectors: each mailbox and each source of events, whether it works, and what it brought and left out."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER_AGAIN, OPERATE, STEER
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import LONGEST_REASON, Answer, Arguments, Filter, Json, Seconds, Text
from postroom.interfaces.http.api.operation import Noun
from postroom.interfaces.http.api.overview import AccountLineForm
from postroom.operations.accounts.accounts import pause_account, resume_account, sync_account
from postroom.operations.accounts.acting import begin_acting
from postroom.operations.connectors.connector_cards import list_cards, load_connector
from postroom.operations.connectors.not_ingested import check_message_ids, retry_ingest
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


class UntrustedReport(Answer):
    error: str | None
    checkpoint: Json | None


class ReportForm(Answer):
    """The last report of a connector."""

    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str | None
    state: str
    uptime_s: float
    counters: dict[str, int]
    first_seen_at: datetime
    last_heartbeat_at: datetime
    untrusted: UntrustedReport


class ConnectorForm(Answer):
    """A connector. `arrived` is how many messages were accepted in 24 hours."""

    type: str
    identity: str
    name: str
    account: AccountLineForm | None
    report: ReportForm | None
    liveness: str
    is_well: bool
    arrived: int


class ConnectorsAnswer(Answer):
    connectors: list[ConnectorForm]


class WindowForm(Answer):
    name: WindowName
    since: datetime
    until: datetime
    step_s: Seconds = Field(validation_alias="step")
    moments: list[datetime] = Field(description="The beginning of each span.")


class TierCountForm(Answer):
    tier: str
    count: int
    share: float


class VolumeForm(Answer):
    """Accepted messages by tier, for each span of the window."""

    window: WindowForm
    by_tier: dict[str, list[int]]
    tiers: list[TierCountForm]
    total: int
    history: int


class QuotaForm(Answer):
    """The units of the provider's quota that were spent in the minute before `at`."""

    units: int
    per_minute: int
    at: datetime


class UntrustedLeftOut(Answer):
    message_id: str
    reason: str


class LeftOutForm(Answer):
    account: str
    state: str
    since: datetime | str
    next_try_at: datetime | None
    untrusted: UntrustedLeftOut


class ConnectorAnswer(Answer):
    """One connector in a window. `left_out` is mail that was refused or set aside, the newest first."""

    card: ConnectorForm
    volume: VolumeForm
    read_at: datetime
    instances: int
    quota: QuotaForm | None
    contacts_at: datetime | None
    contacts_are_stale: bool
    left_out: list[LeftOutForm]
    left_out_count: int


class AccountAnswer(Answer):
    id: UUID
    email: str
    endpoint_identity: str
    state: str


class SyncAnswer(Answer):
    account: AccountAnswer
    job_id: UUID


class ActAnswer(Answer):
    """An account that acts now. `messages` are decided again, and what follows belongs to the batch."""

    account: AccountAnswer
    acts_from: datetime
    messages: int
    batch_id: UUID


class RetryForm(Answer):
    message_id: str
    job_id: UUID
    asked_before: bool


class RetryAnswer(Answer):
    retries: list[RetryForm]


@CONNECTORS.get("/connectors")
async def read_connectors(call: Call) -> ConnectorsAnswer:
    """All connectors: those of accounts first, then the other sources of events."""
    return ConnectorsAnswer(connectors=[ConnectorForm.of(each) for each in await list_cards(call.database, call.clock)])


@CONNECTORS.post("/connectors/sync", STEER, status=202)
async def sync_mailbox(call: Call, body: AccountBody) -> SyncAnswer:
    """Look for new mail and changed labels now. Safe to repeat."""
    return SyncAnswer.of(await sync_account(call.database, body.account, call.signed(), call.clock))


@CONNECTORS.post("/connectors/pause", OPERATE)
async def pause_mailbox(call: Call, body: PauseAccountBody) -> AccountAnswer:
    """Pause an account: nothing is read from it or changed in it. Safe to repeat."""
    return AccountAnswer.of(await pause_account(call.database, body.account, call.signed(body.reason), call.clock))


@CONNECTORS.post("/connectors/resume", ANSWER_AGAIN)
async def resume_mailbox(call: Call, body: AccountBody) -> AccountAnswer:
    """Use an account again. Safe to repeat."""
    return AccountAnswer.of(await resume_account(call.database, body.account, call.signed(), call.clock))


@CONNECTORS.post("/connectors/act", ANSWER_AGAIN)
async def act_on_mailbox(call: Call, body: ActBody) -> ActAnswer:
    """Act on an account's mail from a time on. Mail since then that nothing was done with is decided again. Safe to
    repeat.
    """
    since = body.since or call.clock()
    account, (messages, batch_id) = await begin_acting(call.database, body.account, since, call.signed(), call.clock)
    return ActAnswer(
        account=AccountAnswer.of(account), acts_from=account.acts_from or since, messages=messages, batch_id=batch_id
    )


@CONNECTORS.post("/connectors/retry", OPERATE, status=202)
async def retry_left_out(call: Call, body: RetryBody) -> RetryAnswer:
    """Fetch once more mail that was refused or set aside. Safe to repeat: `asked_before` names earlier requests."""
    check_message_ids(body.messages)
    folder = call.parts.connector_limits.data_dir
    found = await retry_ingest(call.database, folder, body.account, body.messages, call.signed(), call.clock)
    return RetryAnswer(retries=[RetryForm.of(each) for each in found])


@CONNECTORS.get("/connectors/{type}/{identity:path}")
async def read_connector(call: Call, path: ConnectorPath, query: WindowQuery) -> ConnectorAnswer:
    """One connector: its health, what it delivered in the window, its quota, and what it left out."""
    limits = call.parts.connector_limits
    return ConnectorAnswer.of(
        await load_connector(call.database, path.type, path.identity, query.window, limits, call.clock)
    )
