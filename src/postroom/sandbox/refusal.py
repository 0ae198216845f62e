"""Refusals in Google's words: the status, the reason and the JSON form that its clients look at."""

from postroom.core.errors import PostroomError


class Refusal(PostroomError):
    """A request that Gmail would not accept either."""

    def __init__(self, code: int, status: str, reason: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    def as_json(self) -> dict[str, object]:
        message = str(self)
        return {
            "error": {
                "code": self.code,
                "message": message,
                "errors": [{"message": message, "domain": "global", "reason": self.reason}],
                "status": self.status,
            }
        }

    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        if self.code == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="https://accounts.google.com/", error="invalid_token"'
        return headers


def invalid(message: str) -> Refusal:
    return Refusal(400, "INVALID_ARGUMENT", "invalidArgument", message)


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
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    )
