"""The reports of a connector about itself and its mailbox, and the access tokens that it gets for the mailbox."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, SkipValidation, StringConstraints

from postroom.core import access
from postroom.core.bounds import not_its_identity, own_identity
from postroom.core.heartbeat import Heartbeat, parse_heartbeat
from postroom.core.strict import Strict
from postroom.mailboxes.providers import AccountTokens
from postroom.operations.caller import Caller
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import ADDS, ADDS_ONCE, Argument, tool
from postroom.store.intake.connectors import record_heartbeat
from postroom.store.mail.mail_changes import Change, apply_changes

MOST_CHANGES = 100
ProviderId = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^\x00]*$")]


class HeartbeatAnswer(NamedTuple):
    """`outdated`: a later report of the same instance was received before."""

    status: Literal["recorded", "outdated"]


class MailChange(Strict):
    """A change of one message in the mailbox since it was ingested or last reported."""

    message_id: ProviderId = Field(description="The provider's id of the message, its external_event_id.")
    labels_added: list[ProviderId] = Field([], max_length=100)
    labels_removed: list[ProviderId] = Field([], max_length=100)
    deleted: bool = False


class MailChangesAnswer(NamedTuple):
    """How many stored messages were changed."""

    changed: int


class AccessTokenAnswer(NamedTuple):
    access_token: str
    expires_in: timedelta
    email: str
    level: str
    scopes: Sequence[str]


@CONNECTORS.operation(access.CONNECTORS, tool("connector.heartbeat", "Report how a connector is doing", ADDS_ONCE))
async def report_heartbeat(
    by: Caller,
    /,
    # Validated below, so that errors name the fields of the report.
    report: Annotated[Heartbeat, SkipValidation, Argument("How the connector is doing, as connector.heartbeat.v1.")],
) -> HeartbeatAnswer:
    """Reports state, uptime, counters and checkpoint of this connector, as connector.heartbeat.v1. Send it a little
    more often than every 2 minutes: after 2 minutes without one a connector counts as stale, after 4 as offline.
    """
    checked = parse_heartbeat(report)
    if checked.connector.endpoint_identity != own_identity(by.program):
        raise not_its_identity(by.program, "report.connector.endpoint_identity")
    kept = await by.run(record_heartbeat(checked, by.clock()))
    return HeartbeatAnswer("recorded" if kept else "outdated")


@CONNECTORS.operation(access.CONNECTORS, tool("mail.changes", "Report changes of messages in the mailbox", ADDS_ONCE))
async def report_mail_changes(
    by: Caller,
    /,
    items: Annotated[
        Sequence[MailChange], Argument("1 to 100 changes; those of one message in order.", 1, MOST_CHANGES)
    ],
) -> MailChangesAnswer:
    """Reports which labels were added to or removed from messages of this connector's mailbox, and which messages were
    deleted, so that the stored copies agree. Repeating a report is safe; unknown messages are ignored.
    """
    changes = [
        Change(each.message_id, frozenset(each.labels_added), frozenset(each.labels_removed), each.deleted)
        for each in items
    ]
    return MailChangesAnswer(await by.run(apply_changes(own_identity(by.program), changes, by.clock())))


@CONNECTORS.operation(access.CONNECTORS, tool("credentials.access_token", "Get an access token for the mailbox", ADDS))
async def issue_access_token(
    by: Caller,
    tokens: AccountTokens,
    /,
    refused: Annotated[
        str | None, Argument("A token that was given before and that the provider refused.", 0, 4096)
    ] = None,
) -> AccessTokenAnswer:
    """Returns an access token for the mailbox of the endpoint that this connector's token is bound to, valid for
    expires_in_s seconds from now. Ask again before each use, or when that time is nearly over. If the provider refused
    a token, pass it in refused to get another. On the error account_unusable a person has to act first: stop working on
    the mailbox and ask again after retry_after_s.
    """
    identity = own_identity(by.program)
    if refused is not None:
        await tokens.refused_at(identity, refused)
    token = await tokens.at(identity)
    consent = token.account.consent
    return AccessTokenAnswer(
        token.value,
        token.expires_in,
        token.account.email,
        "" if consent is None else consent.level,
        [] if consent is None else sorted(consent.scopes),
    )
