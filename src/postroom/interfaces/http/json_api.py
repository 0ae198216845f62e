"""The JSON API over HTTP: who calls is checked first, then the arguments are read, and every error has one form.

A caller has a token, or the session of somebody who signed in. What changes something is accepted with a session only
as a form of our own pages is: from our own origin, and with the form token of this very session.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qsl
from uuid import UUID, uuid5

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.core.errors import AccessRefused, BadInput, ConstraintBroken
from postroom.core.roles import Principal
from postroom.core.visitors import Visitor
from postroom.interfaces.argument_forms import Arguments, read_arguments
from postroom.interfaces.dashboard.forms import AGAIN, is_from_own_page
from postroom.interfaces.dashboard.visiting import OWNER, VISITOR
from postroom.interfaces.http.api.operation import PREFIX, ApiOperation
from postroom.interfaces.http.api.registry import OPERATIONS
from postroom.interfaces.http.door import ASK_FOR_TOKEN, Door, HttpRequestRefused, RawHeaders, bearer, values_of
from postroom.interfaces.http.json_api_errors import error_form
from postroom.interfaces.http.json_http import MIB, STATUSES, check_type, parsed, send_json, whole_body
from postroom.interfaces.http.mcp.untrusted import cleaned
from postroom.interfaces.http.services import Services
from postroom.operations.caller import Caller
from postroom.operations.people.audit import find_entry, signature
from postroom.operations.people.form_tokens import is_form_token
from postroom.operations.problems import Problem, is_expected, problem_of

log = structlog.get_logger()

LARGEST_BODY = MIB
LONGEST_KEY = 200
MOST_PARAMETERS = 64
FORM_TOKEN = b"x-form-token"
IDEMPOTENCY_KEY = b"idempotency-key"
USUAL_REASON = "through the API"
_ENTRIES = UUID("6c2f2c1e-5a0e-5b0b-9a54-6f1a3c0f7d11")
"""The namespace of entries in the audit log that are named by an idempotency key."""


class Api:
    """Answers the operations. With `signs_in` off, whoever reaches the server is its owner, as on the pages."""

    def __init__(self, services: Services, door: Door, *, signs_in: bool) -> None:
        self._services = services
        self._door = door
        self._signs_in = signs_in

    def routes(self) -> list[Route]:
        by_path: defaultdict[str, dict[str, ApiOperation]] = defaultdict(dict)
        for each in OPERATIONS:
            by_path[each.path][each.method] = each
        return [
            Route(f"{PREFIX}{path}", _Endpoint(self, by_path[path]), methods=list(by_path[path]))
            for path in sorted(by_path, key=_generality)
        ]

    async def answer(self, operation: ApiOperation, scope: Scope, receive: Receive) -> object:
        who = await self._caller(operation, scope)
        await self._check_access(who, operation)
        arguments = await _arguments(operation, scope, receive)
        services = self._services
        actor = f"person:{who.name}" if isinstance(who, Visitor) else who.actor
        signed = signature(actor, who.role, USUAL_REASON)
        by = Caller(services.database, signed, services.clock, who, services.looks)
        key = _idempotency_key(scope["headers"]) if operation.once else None
        if key is None:
            return await operation.run(services.parts, by, arguments)
        entry_id = uuid5(_ENTRIES, f"{actor}\n{key}")
        return await self._once(operation, replace(by, signature=signed._replace(entry_id=entry_id)), arguments)

    async def _once(self, operation: ApiOperation, by: Caller, arguments: Sequence[Arguments]) -> object:
        """Run an operation that writes the caller's entry of the audit log in the transaction of its change, unless it
        was done before."""
        await self._refuse_repeated(by.signature.entry_id)
        try:
            return await operation.run(self._services.parts, by, arguments)
        except ConstraintBroken:
            # The entry exists if the same request was answered meanwhile.
            await self._refuse_repeated(by.signature.entry_id)
            raise

    async def _refuse_repeated(self, entry_id: UUID) -> None:
        found = await find_entry(self._services.database, entry_id)
        if found is not None:
            problem = f"was used before, for {found.action} of the {found.object_type} {found.object_id}"
            remedy = "it is done: do not repeat it, or send another key for something else"
            raise HttpRequestRefused(409, "repeated", "idempotency-key", problem, remedy)

    async def _caller(self, operation: ApiOperation, scope: Scope) -> Visitor | Principal:
        if bearer(values_of(scope["headers"], b"authorization")) is not None:
            return await self._door.admit(scope, operation.method, "HEAD")
        visitor: Visitor | None = scope.get(VISITOR) or (None if self._signs_in else OWNER)
        if visitor is None:
            remedy = "send a token as `Authorization: Bearer …`, or sign in"
            raise HttpRequestRefused(401, "no_token", "authorization", "is missing", remedy, ASK_FOR_TOKEN)
        if not operation.is_safe:
            _check_own_page(scope, visitor)
        return visitor

    async def _check_access(self, caller: Visitor | Principal, operation: ApiOperation) -> None:
        access = operation.access
        if isinstance(caller, Principal):
            if caller.role not in access.tokens:
                await self._refuse_token(caller, operation)
            return
        if not caller.may(access.person):
            problem = f"this needs the role {access.person}, and yours is {caller.role}"
            raise HttpRequestRefused(403, "refused", "session", problem, "ask an admin for that role")
        if access.is_fresh and not caller.is_fresh:
            problem = "this asks for a new proof of who you are"
            raise HttpRequestRefused(403, "proof_needed", "session", problem, f"open {AGAIN}, then repeat it")

    async def _refuse_token(self, caller: Principal, operation: ApiOperation) -> None:
        names = " or ".join(sorted(operation.access.tokens))
        remedy = f"use a token of the role {names}" if names else "it is for people who have signed in"
        refused = AccessRefused("token", f"the role {caller.role} may not call {operation.name}", remedy, "role")
        await self._services.parts.refusals.note(caller, operation.name, refused)
        raise refused


def _generality(path: str) -> list[bool]:
    """Sort `/jobs/workers` before `/jobs/{id}`, which would match it too."""
    return ["{" in part for part in path.split("/")]


class _Endpoint:
    """The operations at one path, by method."""

    def __init__(self, api: Api, operations: Mapping[str, ApiOperation]) -> None:
        self._api = api
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations["GET" if scope["method"] == "HEAD" else scope["method"]]
        try:
            answer = await self._api.answer(operation, scope, receive)
            content = cleaned(answer)
        except HttpRequestRefused as away:
            form = away.form
            error = error_form(form["code"], form["problem"], form["field"], form["remedy"])
            await send_json(send, away.status, error, away.headers)
        except ClientDisconnect:
            return
        except Exception as error:
            if not is_expected(error):
                # Only the type of the error: its text may quote mail.
                log.error("api.failed", operation=operation.name, error=type(error).__name__)
            await _send_problem(send, problem_of(error))
        else:
            await send_json(send, operation.status, content)


async def _send_problem(send: Send, problem: Problem) -> None:
    form, again = problem.form, problem.retry_after_s
    headers = [] if again is None else [(b"retry-after", b"%d" % max(1, round(again)))]
    error = error_form(form["code"], form["problem"], form["field"], form["remedy"])
    await send_json(send, STATUSES[problem.code], error, headers)


def _check_own_page(scope: Scope, visitor: Visitor) -> None:
    if not is_from_own_page(Request(scope)):
        remedy = "call from a page of Postroom's own, or with a token"
        raise HttpRequestRefused(403, "foreign_origin", "origin", "is not that of our own pages", remedy)
    given = values_of(scope["headers"], FORM_TOKEN)
    if len(given) != 1 or not is_form_token(given[0], visitor):
        remedy = f"send `form_token` of GET {PREFIX}/session"
        raise HttpRequestRefused(403, "bad_form_token", "x-form-token", "is not the form token of this session", remedy)


async def _arguments(operation: ApiOperation, scope: Scope, receive: Receive) -> list[Arguments]:
    """Read all arguments. The body comes last, so that nothing is read for a request that is wrong anyway."""
    found: list[Arguments] = []
    if (form := operation.arguments("path")) is not None:
        found.append(read_arguments(operation.name, form, scope["path_params"]))
    query = _query(scope)
    if (form := operation.arguments("query")) is not None:
        found.append(read_arguments(operation.name, form, query))
    elif query:
        raise BadInput(next(iter(query))[:80], f"is not an argument of {operation.name}", "leave it out")
    if (form := operation.arguments("body")) is not None:
        found.append(read_arguments(operation.name, form, await _body(scope["headers"], receive)))
    return found


def _query(scope: Scope) -> dict[str, str]:
    text = scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="replace")
    except ValueError:
        raise BadInput("query", f"has more than {MOST_PARAMETERS} parameters", "send fewer") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadInput("query", "has a parameter twice", "send each once")
    return found


async def _body(headers: RawHeaders, receive: Receive) -> dict[str, Any]:
    """Read the body; one that is empty has no arguments."""
    body = await whole_body(headers, receive, LARGEST_BODY)
    if not body:
        return {}
    check_type(headers)
    found = parsed(body, "send one object, in UTF-8")
    if not isinstance(found, dict):
        raise BadInput("body", "is not an object", "send one object, in UTF-8")
    given = cast("dict[str, Any]", found)
    _refuse_nul(given)
    return given


def _refuse_nul(content: object) -> None:
    """Raise BadInput for a text that PostgreSQL cannot store, however deep it is."""
    waiting: list[object] = [content]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str) and "\0" in each:
            raise BadInput("body", "contains the character NUL", "leave it out")
        if isinstance(each, dict):
            members = cast("dict[object, object]", each)
            waiting += [*members.keys(), *members.values()]
        elif isinstance(each, list):
            waiting += cast("list[object]", each)


def _idempotency_key(headers: RawHeaders) -> str | None:
    keys: Sequence[str] = values_of(headers, IDEMPOTENCY_KEY)
    if not keys:
        return None
    if len(keys) > 1 or not 0 < len(keys[0]) <= LONGEST_KEY:
        raise BadInput("idempotency-key", f"is not one of 1 to {LONGEST_KEY} characters", "send one, such as a UUID")
    return keys[0]
