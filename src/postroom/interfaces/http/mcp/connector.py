"""The tools with which a connector reports on itself and on its mailbox, and gets an access token for it."""

from typing import Annotated, Literal

from pydantic import Field, SkipValidation, StringConstraints
from typing_extensions import TypedDict

from postroom.core.bounds import bound_identity, not_its_identity
from postroom.core.errors import AccountUnusable
from postroom.core.heartbeat import Heartbeat, parse_heartbeat
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import ADDS, ADDS_ONCE, MOST_IN_BATCH, Arguments, Call, Text, tool
from postroom.store.intake.connectors import record_heartbeat
from postroom.store.mail.mail_changes import Change, apply_changes

ProviderId = Annotated[Text, StringConstraints(min_length=1, max_length=512)]


class HeartbeatArguments(Arguments):
    report: Annotated[Heartbeat, SkipValidation] = Field(
        description="How the connector is doing, as connector.heartbeat.v1."
    )


class HeartbeatAnswer(TypedDict):
    """`outdated`: a later report of the same instance was received before."""

    status: Literal["recorded", "outdated"]


@tool("connector.heartbeat", "Report how a connector is doing", ADDS_ONCE, roles={Role.CONNECTOR})
async def heartbeat(call: Call, arguments: HeartbeatArguments) -> HeartbeatAnswer:
    """Reports state, uptime, counters and checkpoint of this connector, as connector.heartbeat.v1. Send it a little
    more often than every 2 minutes: after 2 minutes without one a connector counts as stale, after 4 as offline.
    """
    report = parse_heartbeat(arguments.report)
    if report.connector.endpoint_identity != bound_identity(call.principal):
        raise not_its_identity(call.principal, "report.connector.endpoint_identity")
    kept = await call.services.database.run(record_heartbeat(report, call.services.clock()))
    return {"status": "recorded" if kept else "outdated"}


class MailChange(Arguments):
    """A change of one message in the mailbox since it was ingested or last reported."""

    message_id: ProviderId = Field(description="The provider's id of the message, its external_event_id.")
    labels_added: list[ProviderId] = Field([], max_length=100)
    labels_removed: list[ProviderId] = Field([], max_length=100)
    deleted: bool = False


class MailChangesArguments(Arguments):
    items: list[MailChange] = Field(
        min_length=1, max_length=MOST_IN_BATCH, description="1 to 100 changes; those of one message in order."
    )


class MailChangesAnswer(TypedDict):
    """How many stored messages were changed."""

    changed: int


@tool("mail.changes", "Report changes of messages in the mailbox", ADDS_ONCE, roles={Role.CONNECTOR})
async def mail_changes(call: Call, arguments: MailChangesArguments) -> MailChangesAnswer:
    """Reports which labels were added to or removed from messages of this connector's mailbox, and which messages were
    deleted, so that the stored copies agree. Repeating a report is safe; unknown messages are ignored.
    """
    identity = bound_identity(call.principal)
    changes = [
        Change(each.message_id, frozenset(each.labels_added), frozenset(each.labels_removed), each.deleted)
        for each in arguments.items
    ]
    applied = apply_changes(identity or "", changes, call.services.clock())
    return {"changed": await call.services.database.run(applied)}


class AccessTokenArguments(Arguments):
    refused: Text | None = Field(
        None, max_length=4096, description="A token that was given before and that the provider refused."
    )


class AccessTokenAnswer(TypedDict):
    access_token: str
    expires_in_s: float
    email: str
    level: str
    scopes: list[str]


@tool("credentials.access_token", "Get an access token for the mailbox", ADDS, roles={Role.CONNECTOR})
async def access_token(call: Call, arguments: AccessTokenArguments) -> AccessTokenAnswer:
    """Returns an access token for the mailbox of the endpoint that this connector's token is bound to, valid for
    expires_in_s seconds from now. Ask again before each use, or when that time is nearly over. If the provider refused
    a token, pass it in refused to get another. On the error account_unusable a person has to act first: stop working on
    the mailbox and ask again after retry_after_s.
    """
    # The endpoint to which the caller is bound; it cannot name another.
    identity, credentials = bound_identity(call.principal), call.services.credentials
    if identity is None or credentials is None:
        raise AccountUnusable(
            "missing", "no account is connected here", "connect one with `postroom account add gmail`"
        )
    if arguments.refused is not None:
        await credentials.refused_at(identity, arguments.refused)
    token = await credentials.at(identity)
    consent = token.account.consent
    return {
        "access_token": token.value,
        "expires_in_s": token.expires_in.total_seconds(),
        "email": token.account.email,
        "level": "" if consent is None else consent.level,
        "scopes": [] if consent is None else sorted(consent.scopes),
    }


TOOLS = (heartbeat, mail_changes, access_token)
