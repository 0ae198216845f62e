"""Who calls, and what proves that a change is asked for by a page of ours."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from postroom.core.access import ANYBODY
from postroom.core.visitors import Visitor
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Json
from postroom.interfaces.http.api.handwritten import Noun

SESSION = Noun("The caller")


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


@dataclass(frozen=True, slots=True)
class OpenApiAnswer:
    """The description of this API in OpenAPI 3.1."""

    openapi: str
    info: Json
    security: Sequence[Json]
    tags: Sequence[Json]
    paths: Json
    components: Json


@SESSION.get("/openapi.json", ANYBODY)
async def read_openapi(call: Call) -> OpenApiAnswer:
    """The description of this API in OpenAPI 3.1."""
    from postroom.interfaces.http.api.openapi import openapi  # few ask

    # In a thread, so that the server still answers while it is made.
    return OpenApiAnswer(**await asyncio.to_thread(openapi))


@SESSION.get("/session", ANYBODY)
async def read_session(call: Call) -> SessionAnswer:
    """Who the caller is, as the audit log names it."""
    who, name = call.caller, call.signed().actor
    if isinstance(who, Visitor):
        return SessionAnswer(kind="person", name=name, role=who.role, is_fresh=who.is_fresh, form_token=who.form_token)
    return SessionAnswer(kind="token", name=name, role=who.role, is_fresh=False, form_token=None)
