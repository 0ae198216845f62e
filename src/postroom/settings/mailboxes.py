"""The settings of mailboxes: their providers, connectors, accounts and backfills."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from postroom.core.actions.parameters import instead_of_label
from postroom.settings.checks import address, form
from postroom.settings.sections import Seconds, Section, Whole, Zone, from_json


class ImapSettings(Section):
    poll_s: Seconds = Field(
        30.0,
        ge=1,
        description="Seconds between two looks at a mailbox; new mail in the inbox is reported at once (IDLE).",
    )
    most_connections: Whole = Field(
        2_000,
        ge=1,
        description="Connections to mail servers, all accounts together: half of them for work, which waits for its "
        "turn, half to wait for news; mailboxes that get none of those are looked at every `imap.poll_s`. Never more "
        "than half of the files that the process may open (`ulimit -Hn`).",
    )
    allow_plain: bool = Field(
        False, description="Allow connections without TLS, to servers on this machine (loopback) only."
    )


class GmailSettings(Section):
    base_url: str = Field("https://gmail.googleapis.com", description="The address of Gmail's API.")
    token: SecretStr | None = Field(None, description="Access token for the sandbox mailbox.")
    poll_s: Seconds = Field(5.0, gt=0, description="Seconds between two polls of the mailbox.")
    snooze_label: str = Field(
        "Postroom/Snoozed", min_length=1, max_length=225, description="The label of snoozed mail, created on demand."
    )
    units_per_minute: Whole = Field(
        6_000, ge=1, description="Google's quota units per minute and user; 15,000 for projects from before May 2026."
    )
    reserve_units: Whole = Field(
        1_200, ge=0, description="Units per minute that are kept for urgent mail and actions while other mail is read."
    )
    prices: Annotated[dict[str, Whole], BeforeValidator(from_json)] = Field(
        {}, description='Units per call of methods that differ from Google\'s table, such as `{"messages.get": 5}`.'
    )
    pubsub_topic: str | None = Field(
        None,
        pattern=r"^projects/[^/\s]+/topics/[^/\s]+$",
        description="The Pub/Sub topic to which Gmail reports new mail, `projects/…/topics/…`; renewed daily.",
    )
    pubsub_subscription: str | None = Field(
        None,
        pattern=r"^projects/[^/\s]+/subscriptions/[^/\s]+$",
        description="The Pub/Sub subscription that the connector pulls, `projects/…/subscriptions/…`.",
    )
    pubsub_key_file: Path | None = Field(
        None,
        description="The key file of a service account that may pull the subscription; without it, the account's "
        "consent must include Pub/Sub.",
    )
    push_audience: str | None = Field(
        None, description="Accept Pub/Sub pushes at `/hooks/gmail` with a token for this audience; without it, none."
    )
    push_account: str | None = Field(
        None, description="The service account that must sign the pushes; without it, any signed by Google."
    )
    push_keys_url: str = Field(
        "https://www.googleapis.com/oauth2/v3/certs", description="Where Google publishes its public signing keys."
    )
    pubsub_url: str = Field("https://pubsub.googleapis.com", description="The address of Google's Pub/Sub API.")

    @field_validator("snooze_label")
    @classmethod
    def _is_a_label_of_ones_own(cls, value: str) -> str:
        if (instead := instead_of_label(value)) is not None:
            raise ValueError(f"a label of your own, not one that Gmail has or that looks like it; {instead}")
        return value

    _addresses = address(
        "base_url",
        "pubsub_url",
        "push_keys_url",
        example="https://gmail.googleapis.com",
        pattern=r"https?://[^\s/@]+[^\s@]*",
    )


class GoogleSettings(Section):
    client_id: str | None = Field(
        None, min_length=1, description="The client id of your own Google app, `….apps.googleusercontent.com`."
    )
    client_secret: SecretStr | None = Field(None, description="The client secret of that app.")
    auth_url: str = Field(
        "https://accounts.google.com/o/oauth2/v2/auth", description="Where Google asks the user for consent."
    )
    token_url: str = Field("https://oauth2.googleapis.com/token", description="Where Google issues tokens.")
    revoke_url: str = Field("https://oauth2.googleapis.com/revoke", description="Where Google revokes a consent.")

    _addresses = address(
        "auth_url", "token_url", "revoke_url", example="https://oauth2.googleapis.com/token", keep_slash=True
    )


class MicrosoftSettings(Section):
    client_id: str | None = Field(
        None, min_length=1, description="The application (client) id of your own app at Microsoft."
    )
    client_secret: SecretStr | None = Field(
        None, description="The client secret of that app; one for mobile and desktop has none."
    )
    tenant: str = Field(
        "common",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$",
        description="Whose accounts may consent: `common`, `consumers`, `organizations`, or an organisation's id or "
        "domain.",
    )
    base_url: str = Field(
        "https://login.microsoftonline.com", description="Where Microsoft asks for consent and issues tokens."
    )

    _address = address("base_url", example="https://login.microsoftonline.com")


class AccountSettings(Section):
    email: str | None = Field(None, description="The mail address of the mailbox's owner.")

    _email = form("email", pattern=r"[^\s@]+@[^\s@]+", allowed="an address such as ada@example.com")


class ConnectorSettings(Section):
    token: SecretStr | None = Field(
        None, description="The token of a connector for the switchboard, from `postroom token create --role connector`."
    )
    switchboard_url: str = Field(
        "http://127.0.0.1:8025/mcp",
        description="The address of the switchboard, for connectors that run by themselves. Without a path, `/mcp` is "
        "added.",
    )
    contacts_refresh_s: float = Field(
        900.0, ge=1, le=86_400, description="Seconds between two fetches of the contacts by a connector."
    )
    contacts_stale_s: float = Field(
        3600.0,
        ge=1,
        le=604_800,
        description="Seconds after which contacts that could not be refreshed are no longer used; "
        "more than `contacts_refresh_s`.",
    )
    heartbeat_s: float = Field(
        110.0, ge=1, le=119, description="Seconds between two heartbeats of a connector; after 120 it counts as stale."
    )

    @field_validator("contacts_stale_s")
    @classmethod
    def _leaves_time_to_refresh(cls, value: float, info: ValidationInfo) -> float:
        if value <= info.data.get("contacts_refresh_s", 0):
            raise ValueError("more than contacts_refresh_s, or contacts are never used")
        return value

    @field_validator("switchboard_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^\s/@?#]+[^\s@?#]*", value):
            raise ValueError("an address such as http://127.0.0.1:8025/mcp, without user or password")
        _, _, path = value.partition("://")[2].partition("/")
        return value if path else f"{value.removesuffix('/')}/mcp"


class BackfillSettings(Section):
    time_zone: Zone = Field(
        "UTC",
        description="The time zone of the days of a backfill: of its window, and of its daily cap, which starts again "
        "at midnight. A name such as `Europe/Berlin`.",
    )
    rate_limit_per_hour: Whole = Field(
        100, ge=1, le=1_000_000, description="How many messages a backfill reads per hour, if it does not say."
    )
    daily_cost_cap_cents: Whole = Field(
        500, ge=1, le=10_000_000, description="What a backfill may cost per day, in cents, if it does not say."
    )
    poll_interval_s: Seconds = Field(
        60.0,
        ge=60,
        le=86_400,
        description="Seconds between two times that a connector in its own process asks for a backfill to work on.",
    )
    progress_interval: Whole = Field(
        50, ge=1, le=1_000, description="After how many messages a connector reports the progress of a backfill."
    )
