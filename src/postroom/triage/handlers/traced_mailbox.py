"""A mailbox that records a span for every call. The span names the call, not the message or label."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from postroom.core.mail.mailbox import Mailbox
from postroom.telemetry.tracing import span

# These ask nobody.
_UNTRACED = frozenset({"place_of", "expect"})


def traced(mailbox: Mailbox) -> Mailbox:
    """Wrap the mailbox so that its calls are traced."""
    return cast("Mailbox", _Traced(mailbox))


class _Traced:
    def __init__(self, mailbox: Mailbox) -> None:
        self.provider = mailbox.provider
        self._mailbox = mailbox

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method: Callable[..., Awaitable[Any]] = getattr(self._mailbox, name)
        if name in _UNTRACED:
            return method

        async def spanned(*arguments: Any, **named: Any) -> Any:
            with span(f"{self.provider} {name}"):
                return await method(*arguments, **named)

        return spanned
