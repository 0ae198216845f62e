"""Settings for approvals: the signed webhook and the Discord bot."""

import re

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from postroom.settings.checks import ADDRESS_WITH_QUERY, address, secret_of_webhook
from postroom.settings.sections import Names, Section


class ApprovalsSettings(Section):
    webhook_url: str | None = Field(
        None, description="Webhook for requests for your approval, signed with `approvals.webhook_secret`."
    )
    webhook_secret: SecretStr | None = Field(
        None, description="The secret that signs the requests to the webhook and the answers from it."
    )
    webhook_answers: bool = Field(
        False, description="Accept answers at `/hooks/approvals` that are signed with `approvals.webhook_secret`."
    )
    public_url: str | None = Field(
        None, description="The address of the pages in your browser, such as `https://mail.example.com`, for links."
    )

    _addresses = address(
        "webhook_url", "public_url", example="https://example.com/approvals", pattern=ADDRESS_WITH_QUERY
    )

    _secret = secret_of_webhook("approvals", "webhook_url", "webhook_secret")

    @field_validator("webhook_answers")
    @classmethod
    def _are_signed(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("webhook_secret") is None:
            raise ValueError("false, or set approvals.webhook_secret, which must sign the answers")
        return value


class DiscordSettings(Section):
    token: SecretStr | None = Field(
        None, description="The token of your own Discord bot, which asks for your approvals; without it, no bot runs."
    )
    channel: str | None = Field(
        None, pattern=r"^\d{5,25}$", description="The id of the Discord channel in which the bot asks."
    )
    approvers: Names = Field(
        (), description="The ids of the Discord users whose answers count; all others are ignored."
    )
    base_url: str = Field("https://discord.com/api/v10", description="Where Discord's API answers.")
    gateway_url: str = Field("wss://gateway.discord.gg", description="Where Discord's gateway answers.")

    @field_validator("channel")
    @classmethod
    def _is_named(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("token") is not None:
            raise ValueError("the id of a channel, since discord.token is set")
        return value

    @field_validator("approvers")
    @classmethod
    def _are_users(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not re.fullmatch(r"[0-9]{5,25}", each) for each in value):
            raise ValueError("ids of users, which are numbers: with Discord's developer mode on, `Copy User ID`")
        return value

    _addresses = address(
        "base_url",
        "gateway_url",
        example="https://discord.com/api/v10",
        pattern=r"(https?|wss?)://[^\s/@?#]+[^\s@?#]*",
    )
