"""The errors of OAuth, where a provider has none of its own. None quotes a token, a code or a secret."""

from postroom.core.errors import MailboxError, NeedsPerson, NoAccess


class OAuthError(MailboxError):
    """The root of the errors of OAuth."""


class GrantEnded(OAuthError, NeedsPerson):
    """The consent behind a refresh token is gone: only the user can give another. `reason` is the provider's word."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"{provider} no longer accepts the consent ({reason})")
        self.reason = reason


class ConsentRefused(OAuthError):
    """There is no consent: the user refused, or the answer does not match the request."""


class AppRefused(OAuthError):
    """The provider does not accept the program itself. With `needs_consent`, earlier consents stay invalid."""

    def __init__(self, problem_and_remedy: str, *, needs_consent: bool = False) -> None:
        super().__init__(problem_and_remedy)
        self.needs_consent = needs_consent


class TokenUnavailable(OAuthError, NoAccess):
    """No access token is available for now."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"no access token is available: {problem}; it may work later")
