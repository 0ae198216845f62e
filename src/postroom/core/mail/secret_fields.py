"""The names of the fields that the secrets of accounts are sealed under."""

REFRESH_TOKEN = "refresh_token"  # noqa: S105
PASSWORD = "password"  # noqa: S105
SMTP_PASSWORD = "smtp_password"  # noqa: S105
