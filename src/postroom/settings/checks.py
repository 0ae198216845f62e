"""Checks that several sections make of their fields. Each refuses a value by naming what is allowed instead."""

import re
from typing import Any, TypeVar

from pydantic import SecretStr, ValidationInfo, field_validator

ADDRESS = r"https?://[^\s/@?#]+[^\s@?#]*"
ADDRESS_WITH_QUERY = r"https?://[^\s/@?#]+[^\s@#]*"
SHORTEST_SECRET = 16
Given = TypeVar("Given", bound=str | SecretStr | None)


def form(*fields: str, pattern: str, allowed: str) -> Any:
    """Let these fields, if set, only have texts of this form."""

    def check(value: Given) -> Given:
        given = value.get_secret_value() if isinstance(value, SecretStr) else value
        if given is not None and not re.fullmatch(pattern, given):
            raise ValueError(allowed)
        return value

    return field_validator(*fields)(check)


def address(*fields: str, example: str, pattern: str = ADDRESS, keep_slash: bool = False) -> Any:
    """Let these fields, if set, only have addresses; a slash at the end is left out unless it is to be kept."""

    def check(value: str | None) -> str | None:
        if value is not None and not re.fullmatch(pattern, value):
            raise ValueError(f"an address such as {example}, without user or password")
        return value if value is None or keep_slash else value.rstrip("/")

    return field_validator(*fields)(check)


def both_or_neither(section: str, one: str, other: str) -> Any:
    """Let two fields be set only together; the other is declared later."""

    def check(value: Given, info: ValidationInfo) -> Given:
        if (value is None) != (info.data.get(one) is None):
            raise ValueError(f"both {section}.{one} and {section}.{other}, or neither")
        return value

    return field_validator(other)(check)


def secret_of_webhook(section: str, url: str, secret: str) -> Any:
    """Let a webhook only be set with a secret that signs its requests, declared later."""

    def check(value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        allowed = f"a secret of {SHORTEST_SECRET} characters or more"
        if value is None and info.data.get(url) is not None:
            raise ValueError(f"{allowed}, since {section}.{url} is set")
        if value is not None and len(value.get_secret_value()) < SHORTEST_SECRET:
            raise ValueError(f"{allowed}, as from `openssl rand -hex 32`")
        return value

    return field_validator(secret)(check)
