"""Google's errors: the status, the reason and the JSON format that its clients expect."""

from collections.abc import Collection
from typing import Any

REALM = 'Bearer realm="https://accounts.google.com/"'
SERVICE = "gmail.googleapis.com"
CREDENTIALS = (
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)


class SandboxError(Exception):
    """The base of the errors that the sandbox raises on purpose."""


class Refusal(SandboxError):
    """An error that Gmail would return too."""

    def __init__(
        self,
        code: int,
        status: str,
        reason: str,
        message: str,
        retry_after: int | None = None,
        *,
        domain: str = "global",
        short: str = "",
        detail: str = "",
        challenge: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self._domain = domain
        self._short = short or message
        self._detail = detail
        self._challenge = challenge

    def as_json(self) -> dict[str, Any]:
        error: dict[str, Any] = {
            "code": self.code,
            "message": str(self),
            "errors": [{"message": self._short, "domain": self._domain, "reason": self.reason}],
            "status": self.status,
        }
        if self._detail:
            error["details"] = [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": self._detail,
                    "domain": "googleapis.com",
                    "metadata": {"service": SERVICE},
                }
            ]
        return {"error": error}

    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        if self.code == 401:
            headers["WWW-Authenticate"] = f'{REALM}, error="invalid_token"'
        if self._challenge:
            headers["WWW-Authenticate"] = f"{REALM}, {self._challenge}"
        return headers


def invalid(message: str) -> Refusal:
    return Refusal(400, "INVALID_ARGUMENT", "invalidArgument", message)


def failed_precondition(message: str) -> Refusal:
    return Refusal(400, "FAILED_PRECONDITION", "failedPrecondition", message)


def missing() -> Refusal:
    return Refusal(404, "NOT_FOUND", "notFound", "Requested entity was not found.")


def conflict(message: str) -> Refusal:
    return Refusal(409, "ABORTED", "aborted", message)


def too_large(limit: int) -> Refusal:
    return Refusal(413, "INVALID_ARGUMENT", "uploadTooLarge", f"A message has at most {limit} bytes")


def delegation_denied(user: str) -> Refusal:
    return Refusal(403, "PERMISSION_DENIED", "forbidden", f"Delegation denied for {user}")


def unauthenticated() -> Refusal:
    return Refusal(
        401,
        "UNAUTHENTICATED",
        "authError",
        f"Request had invalid authentication credentials. {CREDENTIALS}",
        short="Invalid Credentials",
    )


def login_required() -> Refusal:
    return Refusal(
        401,
        "UNAUTHENTICATED",
        "required",
        f"Request is missing required authentication credential. {CREDENTIALS}",
        short="Login Required.",
        detail="CREDENTIALS_MISSING",
        challenge="",
    )


def scope_missing(scopes: Collection[str]) -> Refusal:
    """The token is valid but lacks the scope. Google lists the sufficient scopes in a header."""
    return Refusal(
        403,
        "PERMISSION_DENIED",
        "insufficientPermissions",
        "Request had insufficient authentication scopes.",
        short="Insufficient Permission",
        detail="ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        challenge=f'error="insufficient_scope", scope="{" ".join(scopes)}"',
    )


def forbidden(message: str) -> Refusal:
    return Refusal(403, "PERMISSION_DENIED", "forbidden", message)
