"""Settings: those in effect, tokens, people, and what is protected."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from postroom.core.access import ADMINISTER, ANSWER_AGAIN, OPERATE, OWN, OWN_AGAIN
from postroom.core.actions.safety import ProtectedKind
from postroom.core.roles import Role
from postroom.core.visitors import PersonRole
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import LONGEST_REASON, Arguments, Done, Filter, Nothing, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.operations.actions.protection import ProtectedView, list_protected, protect, unprotect
from postroom.operations.caller import Caller
from postroom.operations.installation.settings_view import SettingView, settings_in_effect
from postroom.operations.people.pages_address import link_address
from postroom.operations.people.people import (
    LinkText,
    PersonView,
    add_person,
    change_role,
    link_for,
    list_people,
    remove_person,
)
from postroom.operations.people.tokens import Token, create_token, list_tokens, mint, revoke_token

SETTINGS = Noun("Settings")
TokenRole = Literal["agent", "dashboard", "connector", "metrics", "admin"]


class TokenPath(Arguments):
    token: UUID = Field(description="The id of the token.")


class NewTokenBody(Arguments):
    role: TokenRole = Field(description="Its role; tokens of senders are made with `postroom token create`.")
    name: Filter | None = Field(None, description="A name to know it by.")
    identity: Filter | None = Field(None, description="For a connector: the endpoint that it is bound to.")
    expires_at: AwareDatetime | None = Field(None, description="When it ends; null for no end.")


class PersonPath(Arguments):
    name: Filter = Field(description="The name that they sign in with.")


class RoleBody(Arguments):
    role: PersonRole


class NewPersonBody(RoleBody):
    name: Filter = Field(description="The name that they will sign in with.")


class ProtectedBody(Arguments):
    kind: ProtectedKind
    value: Filter = Field(description="An address, a domain or a label.")


class ProtectBody(ProtectedBody):
    reason: Text | None = Field(None, max_length=LONGEST_REASON, description="Why, for the audit log.")


@dataclass(frozen=True, slots=True)
class SettingsAnswer:
    settings: Sequence[SettingView]


@dataclass(frozen=True, slots=True)
class TokensAnswer:
    """The newest first."""

    tokens: Sequence[Token]


@dataclass(frozen=True, slots=True)
class NewTokenAnswer:
    """`text` is the token itself. It is shown once and stored nowhere."""

    token: Token
    text: str


@dataclass(frozen=True, slots=True)
class RevokedAnswer:
    """Whether it was valid until now, and what its holder had asked for that was not done."""

    revoked: Annotated[bool, "False if it was revoked before."]
    withdrawn: Annotated[int, "Actions that waited for approval and do so no longer."]
    canceled: Annotated[int, "Queued actions that are canceled."]
    stopping: Annotated[int, "Actions that had begun: they stop at their next step, or are done by then."]


@dataclass(frozen=True, slots=True)
class PeopleAnswer:
    people: Sequence[PersonView]


@dataclass(frozen=True, slots=True)
class LinkAnswer:
    """The one-time link with which they choose a passkey or a password. It is shown once and stored nowhere."""

    link: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """False if nothing had to be changed."""

    changed: bool


@dataclass(frozen=True, slots=True)
class ProtectionAnswer:
    protected: Sequence[ProtectedView]


@SETTINGS.get("/settings")
async def read_settings(call: Call) -> SettingsAnswer:
    """The settings in effect, each with where it was set."""
    return SettingsAnswer(settings_in_effect(call.parts.settings))


@SETTINGS.get("/settings/tokens")
async def read_tokens(call: Call) -> TokensAnswer:
    """All tokens, without their secrets."""
    return TokensAnswer(await list_tokens(call.database))


@SETTINGS.post("/settings/tokens", OWN_AGAIN, status=201)
async def make_token(call: Call, body: NewTokenBody) -> NewTokenAnswer:
    """Make a token. No token makes tokens: this is for an admin in front of a browser."""
    minted = mint(Role(body.role), body.identity, body.name, body.expires_at)
    made = await create_token(call.by(), minted.token)
    return NewTokenAnswer(made, minted.text)


@SETTINGS.post("/settings/tokens/{token}/revoke", OWN)
async def revoke_one_token(call: Call, path: TokenPath, body: Nothing) -> RevokedAnswer:
    """Revoke a token for good, and withdraw what its holder asked for and what is not done. Safe to repeat."""
    revoked = await revoke_token(call.by(), path.token)
    return RevokedAnswer(revoked.was_live, *revoked.work)


@SETTINGS.get("/settings/people", ADMINISTER)
async def read_people(call: Call) -> PeopleAnswer:
    """The people who may sign in."""
    return PeopleAnswer(await list_people(call.database, call.clock))


@SETTINGS.post("/settings/people", OWN_AGAIN, status=201)
async def add_one_person(call: Call, body: NewPersonBody) -> LinkAnswer:
    """Let somebody in. No token does: this is for an admin in front of a browser."""
    return _link(call, await add_person(call.by(), body.name, body.role))


@SETTINGS.post("/settings/people/{name}/link", OWN_AGAIN, status=201)
async def make_link(call: Call, path: PersonPath, body: Nothing) -> LinkAnswer:
    """Make a new one-time link for somebody. Earlier links of theirs end."""
    return _link(call, await link_for(call.by(), path.name))


@SETTINGS.post("/settings/people/{name}/role", OWN_AGAIN)
async def change_person_role(call: Call, path: PersonPath, body: RoleBody) -> ChangedAnswer:
    """Change what somebody may do, from their next request on. Safe to repeat."""
    return ChangedAnswer(changed=await change_role(call.by(), path.name, body.role))


@SETTINGS.delete("/settings/people/{name}", OWN_AGAIN)
async def remove_one_person(call: Call, path: PersonPath) -> Done:
    """Remove somebody, and sign them out everywhere. What they did stays in the audit log."""
    await remove_person(call.by(), path.name)
    return Done(done="The person is removed and signed out everywhere.")


@SETTINGS.get("/settings/protection")
async def read_protection(call: Call) -> ProtectionAnswer:
    """Senders, domains and labels whose mail is never changed."""
    return ProtectionAnswer(await list_protected(call.database))


@SETTINGS.post("/settings/protection", OPERATE)
async def add_protection(call: Call, body: ProtectBody) -> Done:
    """Protect a sender, a domain or a label. When it answers, nothing changes its mail. Safe to repeat."""
    signed = call.signed(body.reason)
    await protect(Caller(call.database, signed, call.clock), body.kind, body.value, signed.reason or "")
    return Done(done="Protected: no mail of it is changed any more.")


@SETTINGS.post("/settings/protection/remove", ANSWER_AGAIN)
async def remove_protection(call: Call, body: ProtectedBody) -> Done:
    """Let mail of a sender, a domain or a label be changed again."""
    await unprotect(call.by(), body.kind, body.value)
    return Done(done="It is no longer protected.")


def _link(call: Call, made: LinkText) -> LinkAnswer:
    return LinkAnswer(link=link_address(call.parts.settings, made.secret), ends_at=made.link.expires_at)
