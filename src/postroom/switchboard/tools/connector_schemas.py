"""The arguments and answers of the tools for contacts, filters and requests to connectors."""

from typing import Any, Literal, NotRequired
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from postroom.core.lifecycle import RequestState
from postroom.core.mail.ingestion import Extent
from postroom.core.mail.mailbox_requests import FOUND, LONGEST_QUERY, MOST_FOUND, MOST_INGESTED, RequestKind
from postroom.switchboard.tools.ingest_schemas import LONGEST_WAIT_S, Arguments, Text

MOST_CONTACTS = 1000
MOST_EXPORTED = 5000


class ContactsExportArguments(Arguments):
    cursor: Text = Field("", max_length=1000, description="next_cursor of the page before; empty for the first page.")
    max: int = Field(
        MOST_EXPORTED, ge=1, le=MOST_EXPORTED, description=f"How many addresses at most, 1 to {MOST_EXPORTED}."
    )


class ContactForm(Arguments):
    address: Text = Field(min_length=3, max_length=500, description="The mail address, in any form.")
    name: Text = Field("", max_length=200, description="The person's name, if known.")


class ContactsAddArguments(Arguments):
    contacts: list[ContactForm] = Field(
        min_length=1, max_length=MOST_CONTACTS, description=f"1 to {MOST_CONTACTS} people whom the user knows."
    )
    endpoint_identity: Text | None = Field(
        None, min_length=1, max_length=500, description="The mailbox for which they count; without it, all mailboxes."
    )


class WrittenToArguments(Arguments):
    addresses: list[Text] = Field(
        min_length=1, max_length=MOST_CONTACTS, description=f"1 to {MOST_CONTACTS} addresses, in any form."
    )


class RequestsArguments(Arguments):
    max: int = Field(1, ge=1, le=10, description="How many requests at most, 1 to 10.")
    wait_s: float = Field(
        0, ge=0, le=LONGEST_WAIT_S, description="How many seconds to wait when there is none, 0 to 60."
    )


class ReplyArguments(Arguments):
    request_id: UUID = Field(description="The request's id, as `connector.requests` gave it.")
    lease_token: UUID = Field(description="The lease token that `connector.requests` gave with the request.")
    result: dict[str, Any] | None = Field(None, description="The result; not together with error.")
    error: Text | None = Field(
        None, min_length=1, max_length=2000, description="Why it failed, in a few words; instead of result."
    )


class RequestArguments(Arguments):
    endpoint_identity: Text = Field(
        min_length=1, max_length=500, description="The connector's endpoint, as `connector.list` shows it."
    )
    kind: RequestKind = Field(
        "sync_now",
        description="What to do: sync_now looks for new mail at once, ingest ingests the messages in message_ids, "
        "estimate counts the messages that match query, search lists them.",
    )
    message_ids: list[Text] | None = Field(
        None,
        min_length=1,
        max_length=MOST_INGESTED,
        description=f"1 to {MOST_INGESTED} messages by the provider's ids; for ingest only.",
    )
    query: Text | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_QUERY,
        description="A search as in Gmail's search box; for estimate and search only.",
    )
    max: int | None = Field(
        None,
        ge=1,
        le=MOST_FOUND,
        description=f"How many messages to list, 1 to {MOST_FOUND}; default {FOUND}.",
    )
    wait_s: float = Field(0, ge=0, le=LONGEST_WAIT_S, description="How many seconds to wait for the answer, 0 to 60.")


class ContactsExportAnswer(TypedDict):
    """`next_cursor` is null on the last page."""

    generated_at: str
    addresses: list[str]
    next_cursor: str | None


class ContactsAddAnswer(TypedDict):
    added: int
    updated: int
    unchanged: int


class FilterForm(TypedDict):
    number: int
    name: str
    kind: str
    tier: Extent
    value: NotRequired[str]
    header: NotRequired[str]


class FiltersExportAnswer(TypedDict):
    """`version` changes whenever the rules do."""

    generated_at: str
    version: str
    rules: list[FilterForm]


class LeasedRequestForm(TypedDict):
    """A leased request: the caller's until `lease_until`; an answer is useful for `expires_in_s` seconds."""

    request_id: str
    lease_token: str
    lease_until: str
    expires_in_s: float
    kind: RequestKind
    arguments: dict[str, Any]


class RequestsAnswer(TypedDict):
    requests: list[LeasedRequestForm]


class ReplyAnswer(TypedDict):
    status: Literal["recorded"]


class UntrustedResult(TypedDict):
    result: dict[str, Any] | None
    error: str | None


class RequestAnswer(TypedDict):
    """`result` if it was answered, with its numbers also outside `untrusted`; `error` if it failed."""

    request_id: str
    state: RequestState
    result: dict[str, Any] | None
    untrusted: UntrustedResult
