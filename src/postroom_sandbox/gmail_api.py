"""The API methods, after the checks that precede them: token, scopes, faults, quota."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom_sandbox import (
    draft_methods,
    label_methods,
    message_methods,
    settings_methods,
    thread_methods,
    user_methods,
)
from postroom_sandbox.account import Account, Call, Endpoint
from postroom_sandbox.consent import Access, Consents
from postroom_sandbox.faults import Fault, Faults, without_fields
from postroom_sandbox.methods import METHODS, UPLOAD, USER, Method
from postroom_sandbox.partial import selected
from postroom_sandbox.quota import Quota
from postroom_sandbox.refusal import (
    Refusal,
    delegation_denied,
    failed_precondition,
    login_required,
    scope_missing,
    unauthenticated,
)

Json = dict[str, Any]
Answer = Callable[[Request], Awaitable[Response]]

BESIDE = "postroom.beside"

ENDPOINTS: dict[str, Endpoint] = {
    **user_methods.ENDPOINTS,
    **message_methods.ENDPOINTS,
    **thread_methods.ENDPOINTS,
    **draft_methods.ENDPOINTS,
    **label_methods.ENDPOINTS,
    **settings_methods.ENDPOINTS,
}


class GmailApi:
    """The routes of all methods."""

    def __init__(self, accounts: Mapping[str, Account], consents: Consents, quota: Quota, faults: Faults) -> None:
        self._accounts = accounts
        self._consents = consents
        self._quota = quota
        self._faults = faults

    def routes(self) -> list[Route]:
        found = [
            Route(USER + method.path, self._answering(method), methods=[method.verb]) for method in METHODS.values()
        ]
        uploads = [method for method in METHODS.values() if method.uploads]
        return found + [
            Route(UPLOAD + USER + method.path, self._answering(method), methods=[method.verb]) for method in uploads
        ]

    def _answering(self, method: Method) -> Answer:
        endpoint = ENDPOINTS[method.name]

        async def answer(request: Request) -> Response:
            try:
                response = json_response(await self._answer(method, endpoint, request))
            except Refusal as refusal:
                response = refused(refusal)
            self._quota.counters.answers[response.status_code] += 1
            return response

        return answer

    async def _answer(self, method: Method, endpoint: Endpoint, request: Request) -> Json:
        access = authorised(self._consents, request)
        account = self._account(access, request.path_params["userId"])
        user = access.user
        with self._quota.running(user, method.name, request.scope.get(BESIDE, 0)):
            if not access.scopes & frozenset(method.scopes):
                raise scope_missing(method.scopes)
            fault = self._faults.answer_fault(request.url.path, method.name, user)
            if fault is not None:
                self._refuse(fault, access)
            self._quota.charge(user, method.name)
            content = await endpoint(Call(account, request, access.scopes))
        content = _with_fault(content, fault, request) if fault else content
        return selected(content, request.query_params.get("fields", ""))

    def _refuse(self, fault: Fault, access: Access) -> None:
        if fault.kind == "refuse":
            raise fault.refusal()
        if fault.kind == "revoke":
            self._consents.revoke(access.token)
            raise unauthenticated()

    def _account(self, access: Access, user: str) -> Account:
        if user not in ("me", access.user):
            raise delegation_denied(user)
        if access.user not in self._accounts:
            # A service account has no mailbox.
            raise failed_precondition("Precondition check failed.")
        return self._accounts[access.user]


def authorised(consents: Consents, request: Request) -> Access:
    """The access token of the request."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else request.query_params.get("access_token", "")
    if not token:
        raise login_required()
    access = consents.access(token)
    if access is None:
        raise unauthenticated()
    return access


def _with_fault(content: Json, fault: Fault, request: Request) -> Json:
    if fault.kind == "missing_fields":
        return without_fields(content, fault.fields)
    token = request.query_params.get("pageToken")
    return {**content, "nextPageToken": token} if token else content


def json_response(content: Json, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response; for empty content 204 without a body, as Google does."""
    if code == HTTPStatus.OK and not content:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return Response(orjson.dumps(content), code, headers, media_type="application/json; charset=UTF-8")


def refused(refusal: Refusal) -> Response:
    return json_response(refusal.as_json(), refusal.code, refusal.headers())
