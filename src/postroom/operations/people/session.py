"""Who calls, and what proves that a change is asked for by a page of ours."""

from dataclasses import dataclass
from typing import Annotated, Literal

from postroom.core.access import ANYBODY
from postroom.core.visitors import Visitor
from postroom.operations.caller import Caller
from postroom.operations.nouns import SESSION
from postroom.operations.operation import get
from postroom.operations.people.form_tokens import masked_form_token


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """`form_token` is for callers with a session: they send it as `X-Form-Token` with everything that changes
    something. `is_fresh` says that they proved who they are a few minutes ago.
    """

    kind: Literal["person", "token"]
    name: Annotated[str, "As the audit log names the caller."]
    role: str
    is_fresh: bool
    form_token: str | None


@SESSION.operation(ANYBODY, get("/session"))
async def read_session(by: Caller, /) -> SessionAnswer:
    """Who the caller is, as the audit log names it."""
    name, role = by.signature.actor, by.signature.role
    if isinstance(by.who, Visitor):
        return SessionAnswer("person", name, role, by.who.is_fresh, masked_form_token(by.who))
    return SessionAnswer("token", name, role, is_fresh=False, form_token=None)
