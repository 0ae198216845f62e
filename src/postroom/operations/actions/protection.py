"""Senders, domains and labels whose mail is never changed."""

from typing import Annotated

from postroom.core.access import ANSWER_AGAIN, OPERATE, READ
from postroom.core.actions.safety import ProtectedKind
from postroom.core.errors import NotFound
from postroom.core.views import Done
from postroom.operations.actions.pausing import forbid_and_wait
from postroom.operations.caller import Caller
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, command, form, get, post
from postroom.store.actions import protection
from postroom.store.actions.protection import ProtectedView
from postroom.store.engine.database import Database

Kind = Annotated[ProtectedKind, Argument("sender, domain or label.")]
Value = Annotated[str, Argument("An address, a domain or a label.")]


@SETTINGS.operation(READ, get("/settings/protection"), command("protect list", "kind", "value", "reason", "created_at"))
async def list_protected(database: Database, /) -> list[ProtectedView]:
    """List the senders, domains and labels whose mail is never changed."""
    return await database.run(protection.list_protected())


@SETTINGS.operation(
    OPERATE,
    post("/settings/protection"),
    form("/settings/protection"),
    command("protect add {kind} {value}"),
    signs=True,
)
async def protect(by: Caller, /, kind: Kind, value: Value) -> Done:
    """Protect a sender, a domain or a label. When it answers, nothing changes its mail. Safe to repeat."""
    reason = by.signature.reason or ""
    kept = await forbid_and_wait(by.database, protection.protect(kind, value, reason, by.signature, by.clock()))
    return Done(f"Protected: no mail of {kept} is changed any more.")


@SETTINGS.operation(
    ANSWER_AGAIN,
    post("/settings/protection/remove"),
    form("/settings/protection/remove"),
    command("protect remove {kind} {value}"),
)
async def unprotect(by: Caller, /, kind: Kind, value: Value) -> Done:
    """Let mail of a sender, a domain or a label be changed again."""
    if not await by.run(protection.unprotect(kind, value, by.signature, by.clock())):
        raise NotFound(f"the {kind} {value!r} is not protected; `postroom protect list` lists what is")
    return Done(f"No longer protected: {value}.")
