"""Settings for approvals: the signed webhook and the Discord bot."""

import re

from pydantic import Field, SecretStr, ValidationInfo, field_validator

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

    @field_validator("webhook_url", "public_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s/@?#]+[^\s@#]*", value):
            raise ValueError("an address such as https://example.com/approvals, without user or password")
        return value.rstrip("/") if value is not None else None

    @field_validator("webhook_secret")
    @classmethod
    def _is_a_secret(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None and info.data.get("webhook_url") is not None:
            raise ValueError("a secret of 16 characters or more, since approvals.webhook_url is set")
        if value is not None and len(value.get_secret_value()) < 16:
            raise ValueError("a secret of 16 characters or more, as from `openssl rand -hex 32`")
        return value

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

    @field_validator("base_url", "gateway_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if not re.fullmatch(r"(https?|wss?)://[^\s/@?#]+[^\s@?#]*", value):
            raise ValueError("an address such as https://discord.com/api/v10, without user or password")
        return value.rstrip("/")
