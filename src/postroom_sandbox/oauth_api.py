"""Google's OAuth endpoints: consent, issuing and revoking of tokens, and public keys.

The user of the sandbox consents at once, to everything or to what the test allows; there is no page to click on.
"""

import base64
import binascii
from collections.abc import Collection, Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom_sandbox.account import Account
from postroom_sandbox.consent import Client, ConsentError, Consents, Issued, PendingCode
from postroom_sandbox.gmail_api import authorised, json_response, refused
from postroom_sandbox.methods import ALL_SCOPES, EMAIL, OPENID
from postroom_sandbox.refusal import Refusal
from postroom_sandbox.requests import body_of
from postroom_sandbox.service_accounts import ServiceAccounts
from postroom_sandbox.signing import ISSUER, Signer

LARGEST_FORM = 65_536
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class OauthApi:
    def __init__(
        self, accounts: Mapping[str, Account], consents: Consents, signer: Signer, services: ServiceAccounts
    ) -> None:
        self._accounts = accounts
        self._consents = consents
        self._signer = signer
        self._services = services

    def routes(self) -> list[Route]:
        return [
            Route("/o/oauth2/v2/auth", self._authorize, methods=["GET"]),
            Route("/o/oauth2/auth", self._authorize, methods=["GET"]),
            Route("/token", self._token, methods=["POST"]),
            Route("/revoke", self._revoke, methods=["POST"]),
            Route("/tokeninfo", self._tokeninfo, methods=["GET", "POST"]),
            Route("/oauth2/v3/certs", self._certs, methods=["GET"]),
            Route("/oauth2/v3/userinfo", self._userinfo, methods=["GET"]),
            Route("/.well-known/openid-configuration", self._configuration, methods=["GET"]),
        ]

    async def _authorize(self, request: Request) -> Response:
        """Consent and redirect back to the app with a code; show errors that must not be sent back."""
        query = request.query_params
        client = self._consents.clients.get(query.get("client_id", ""))
        redirect = query.get("redirect_uri", "")
        scopes = frozenset(query.get("scope", "").split())
        problem = _problem(client, redirect, query.get("response_type", ""), scopes, query)
        if problem or client is None:
            return _error_page(problem or "invalid_client")
        user = self._choose_user(query.get("login_hint", ""))
        behaviour = self._consents.behaviour
        back: dict[str, str] = {"state": query["state"]} if "state" in query else {}
        granted = scopes - behaviour.withheld
        if behaviour.deny or user is None or not granted:
            return _back_to(redirect, {"error": "access_denied", **back})
        offline = query.get("access_type", "offline") == "offline"
        challenge = query.get("code_challenge", "")
        if query.get("include_granted_scopes") == "true":
            granted |= self._granted_before(user, client.id)
        waiting = PendingCode(client.id, redirect, challenge, user, granted, offline, self._consents.clock())
        answer = {**back, "code": self._consents.code_for(waiting), "scope": " ".join(sorted(granted))}
        return _back_to(redirect, answer)

    def _choose_user(self, hint: str) -> str | None:
        if hint:
            return next((user for user in self._accounts if user.lower() == hint.lower()), None)
        return next(iter(self._accounts), None)

    def _granted_before(self, user: str, client_id: str) -> frozenset[str]:
        before = [each for each in self._consents.grants if each.user == user and each.client_id == client_id]
        return frozenset(scope for each in before if not each.revoked for scope in each.scopes)

    async def _token(self, request: Request) -> Response:
        try:
            fields = _form(await body_of(request, LARGEST_FORM))
            if fields.get("grant_type") == JWT_BEARER:
                return json_response(self._issue_to_service(fields, f"{request.base_url}token"))
            return json_response(self._issue(fields, request.headers.get("Authorization", "")))
        except ConsentError as error:
            return json_response({"error": error.error, "error_description": error.description}, error.code)
        except Refusal as refusal:
            return refused(refusal)

    def _issue(self, fields: dict[str, str], authorization: str) -> dict[str, Any]:
        client_id, secret = _credentials(fields, authorization)
        self._check_client(client_id, secret)
        match fields.get("grant_type", ""):
            case "authorization_code":
                issued = self._consents.redeem(
                    client_id,
                    _require(fields, "code"),
                    _require(fields, "redirect_uri"),
                    fields.get("code_verifier", ""),
                )
            case "refresh_token":
                issued = self._consents.refresh(client_id, _require(fields, "refresh_token"))
            case "":
                raise ConsentError("invalid_request", "Missing required parameter: grant_type")
            case other:
                raise ConsentError("unsupported_grant_type", f"Invalid grant_type: {other}")
        return self._token_answer(issued, client_id)

    def _issue_to_service(self, fields: dict[str, str], endpoint: str) -> dict[str, Any]:
        """Issue a token to a service account, identified by its key alone. Google does not repeat the scopes."""
        account, scopes = self._services.check(_require(fields, "assertion"), endpoint)
        issued = self._consents.issue_to_service(account, scopes)
        return {"access_token": issued.access_token, "expires_in": issued.expires_in, "token_type": "Bearer"}

    def _check_client(self, client_id: str, secret: str) -> None:
        client = self._consents.clients.get(client_id)
        if client is None:
            raise ConsentError("invalid_client", "The OAuth client was not found.", 401)
        if not secret:
            raise ConsentError("invalid_request", "client_secret is missing.")
        if secret != client.secret:
            raise ConsentError("invalid_client", "Unauthorized", 401)

    def _token_answer(self, issued: Issued, client_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "access_token": issued.access_token,
            "expires_in": issued.expires_in,
            "scope": " ".join(sorted(issued.scopes)),
            "token_type": "Bearer",
        }
        if issued.refresh_token:
            answer["refresh_token"] = issued.refresh_token
        if issued.refresh_expires_in is not None:
            answer["refresh_token_expires_in"] = issued.refresh_expires_in
        if OPENID in issued.scopes:
            now = int(self._consents.clock().timestamp())
            claims = {"iss": ISSUER, "aud": client_id, "sub": issued.user, "email": issued.user, "email_verified": True}
            answer["id_token"] = self._signer.sign({**claims, "iat": now, "exp": now + 3600})
        return answer

    async def _revoke(self, request: Request) -> Response:
        fields = {**request.query_params, **_form(await body_of(request, LARGEST_FORM))}
        if not fields.get("token"):
            return json_response({"error": "invalid_request", "error_description": "Missing required parameter"}, 400)
        if not self._consents.revoke(fields["token"]):
            return json_response({"error": "invalid_token", "error_description": "Token expired or revoked"}, 400)
        return Response(b"{}", media_type="application/json; charset=UTF-8")

    async def _tokeninfo(self, request: Request) -> Response:
        access = self._consents.access(request.query_params.get("access_token", ""))
        if access is None:
            return json_response({"error": "invalid_token", "error_description": "Invalid Value"}, 400)
        answer: dict[str, Any] = {"scope": " ".join(sorted(access.scopes)), "access_type": "offline"}
        if access.grant is not None:
            answer |= {"azp": access.grant.client_id, "aud": access.grant.client_id}
        if access.expires_at is not None:
            left = access.expires_at - self._consents.clock()
            answer["expires_in"] = str(int(left.total_seconds()))
        return json_response({**answer, "email": access.user, "email_verified": "true"})

    async def _userinfo(self, request: Request) -> Response:
        try:
            user = authorised(self._consents, request).user
        except Refusal as refusal:
            return refused(refusal)
        return json_response({"sub": user, EMAIL: user, "email_verified": True})

    async def _certs(self, request: Request) -> Response:
        return json_response(self._signer.keys(), headers={"Cache-Control": "public, max-age=3600"})

    async def _configuration(self, request: Request) -> Response:
        root = str(request.base_url).rstrip("/")
        return json_response(
            {
                "issuer": ISSUER,
                "authorization_endpoint": f"{root}/o/oauth2/v2/auth",
                "token_endpoint": f"{root}/token",
                "revocation_endpoint": f"{root}/revoke",
                "userinfo_endpoint": f"{root}/oauth2/v3/userinfo",
                "jwks_uri": f"{root}/oauth2/v3/certs",
                "code_challenge_methods_supported": ["S256"],
            }
        )


def _problem(
    client: Client | None, redirect: str, response_type: str, scopes: Collection[str], query: Mapping[str, str]
) -> str:
    """Why Google would not redirect back at all; empty if it would."""
    if client is None:
        return "invalid_client: The OAuth client was not found."
    where = urlsplit(redirect)
    if redirect not in client.redirects and not (where.scheme == "http" and where.hostname in LOOPBACK):
        return "redirect_uri_mismatch"
    if response_type != "code":
        return f"unsupported_response_type: {response_type}"
    if unknown := sorted(set(scopes) - ALL_SCOPES):
        return f"invalid_scope: {unknown[0]}"
    if not scopes:
        return "invalid_request: Missing required parameter: scope"
    if "code_challenge" in query and query.get("code_challenge_method", "plain") != "S256":
        return "invalid_request: the sandbox takes code_challenge_method=S256 only"
    return ""


def _error_page(problem: str) -> Response:
    return HTMLResponse(f"<!doctype html><title>Error 400</title><p>Access blocked: {escape(problem)}</p>", 400)


def _back_to(redirect: str, answer: dict[str, str]) -> Response:
    joint = "&" if urlsplit(redirect).query else "?"
    return RedirectResponse(f"{redirect}{joint}{urlencode(answer)}", 302)


def _form(body: bytes) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


def _require(fields: dict[str, str], name: str) -> str:
    if not fields.get(name):
        raise ConsentError("invalid_request", f"Missing required parameter: {name}")
    return fields[name]


def _credentials(fields: dict[str, str], authorization: str) -> tuple[str, str]:
    """The client id and secret, from the form or from a Basic header."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
        except (binascii.Error, ValueError):
            raise ConsentError("invalid_client", "Unauthorized", 401) from None
        return client_id, secret
    return _require(fields, "client_id"), fields.get("client_secret", "")
