"""The pages to sign in: by password, passkey or one-time link, and once more before acts that are hard to take back.

A GET changes nothing. The secret of a link stands behind the `#` of its address, which browsers send to nobody: the
page's script puts it into the form. A password works without a script.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom.core.errors import BadInput, PostroomError, SignInRefused
from postroom.core.sign_in.names import person_name
from postroom.interfaces.dashboard.forms import SEE_OTHER, sent_to_prove
from postroom.interfaces.dashboard.said import Said, forget_said, said_before, say
from postroom.interfaces.dashboard.sign_in.cookies import port_of, signed_in, signed_out
from postroom.interfaces.dashboard.sign_in.fields import (
    LARGEST_FORM,
    SentAway,
    checked_session,
    destination,
    fields_of,
    sent_by_script,
)
from postroom.interfaces.dashboard.sign_in.visits import caller_of, session_of, site_of
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import signature_of
from postroom.operations.people.form_tokens import masked_form_token
from postroom.operations.people.kept_forms import LARGEST_KEPT, KeptForm, KeptForms
from postroom.operations.people.own_sign_in import OwnWaysIn
from postroom.operations.people.passkeys import SiteAddress, registration_options, sign_in_options
from postroom.operations.people.sessions import LiveSession, NewCookie
from postroom.operations.people.sign_in import SignIn, again_purpose, link_purpose

LARGEST_AGAIN = LARGEST_FORM + 2 * LARGEST_KEPT
"""Of the form to prove who one is, with a kept form, which is sealed and encoded."""
UNAUTHORIZED, TOO_MANY, BAD_REQUEST = 401, 429, 400
Endpoint = Callable[[Request], Awaitable[Response]]


class SignInPages:
    """All pages that are open to those who have not signed in, and the way out."""

    def __init__(self, site: Site, sign_in: SignIn, own: OwnWaysIn, forms: KeptForms) -> None:
        self._site = site
        self._sign_in = sign_in
        self._own = own
        self._forms = forms
        site.ask_again = self._ask_again

    def routes(self) -> list[Route]:
        def post(address: str, endpoint: Endpoint) -> Route:
            return Route(address, answering(endpoint), methods=["POST"])

        return [
            Route("/sign-in", self._show, methods=["GET"]),
            post("/sign-in", self._with_password),
            post("/sign-in/passkey/options", scripted(self._passkey_options)),
            post("/sign-in/passkey", scripted(self._with_passkey)),
            Route("/sign-in/once", self._show_once, methods=["GET"]),
            post("/sign-in/once", self._choose),
            post("/sign-in/once/password", self._link_with_password),
            post("/sign-in/once/passkey/options", scripted(self._link_options)),
            post("/sign-in/once/passkey", scripted(self._link_with_passkey)),
            Route("/sign-in/again", self._show_again, methods=["GET"]),
            post("/sign-in/again", self._again_with_password),
            post("/sign-in/again/carry-out", self._carry_out_kept),
            post("/sign-in/again/passkey/options", scripted(self._again_options)),
            post("/sign-in/again/passkey", scripted(self._again_with_passkey)),
            post("/sign-out", self._sign_out),
        ]

    # Sign in

    async def _show(self, request: Request) -> Response:
        to = destination(request.query_params.get("to"))
        if session_of(request) is not None:
            return RedirectResponse(to, SEE_OTHER)
        said = said_before(request)
        page = await self._page(request, to, said=said)
        return page if said is None else forget_said(page)

    async def _with_password(self, request: Request) -> Response:
        fields = await fields_of(request)
        to, name = destination(fields.get("to")), fields.get("name", "")
        try:
            cookie = await self._sign_in.with_password(
                name, fields.get("password", ""), fields.get("code", ""), caller_of(request)
            )
        except SignInRefused as refused:
            return await self._page(request, to, name=name, refused=refused)
        return signed_in(request, RedirectResponse(to, SEE_OTHER), cookie)

    async def _passkey_options(self, request: Request, _given: Mapping[str, Any]) -> Mapping[str, Any]:
        return sign_in_options(_named_site(request), await self._sign_in.challenges.new("sign-in"))

    async def _with_passkey(self, request: Request, given: Mapping[str, Any]) -> Response:
        credential = credential_in(given)
        cookie = await self._sign_in.with_passkey(_named_site(request), credential, caller_of(request))
        return _enter(request, given, cookie)

    async def _page(
        self,
        request: Request,
        to: str,
        *,
        name: str = "",
        refused: SignInRefused | None = None,
        said: Said | None = None,
    ) -> Response:
        limits = self._sign_in.sessions.limits
        text = self._site.render(
            "sign_in/sign_in.html",
            to=to,
            name=name[:64],
            refused=refused,
            said=said,
            first_start=await self._sign_in.is_first_start(),
            idle_minutes=round(limits.idle.total_seconds() / 60),
            whole_hours=round(limits.whole.total_seconds() / 3600),
            **place(request),
        )
        return _refused_page(text, refused)

    # By a one-time link

    async def _show_once(self, request: Request) -> Response:
        return HTMLResponse(self._site.render("sign_in/once.html", refused=None, **place(request)))

    async def _choose(self, request: Request) -> Response:
        """Show whose link it is, and ask for a passkey or a password. The link is not used up yet."""
        return await self._choice(request, (await fields_of(request)).get("secret", ""))

    async def _choice(self, request: Request, secret: str, name: str = "", problem: str = "") -> Response:
        try:
            link = await self._sign_in.find_link(secret)
        except SignInRefused as refused:
            return _refused_page(self._site.render("sign_in/once.html", refused=refused, **place(request)), refused)
        text = self._site.render(
            "sign_in/choose.html", link=link, secret=secret, name=name[:64], problem=problem, **place(request)
        )
        return HTMLResponse(text, BAD_REQUEST if problem else 200)

    async def _link_with_password(self, request: Request) -> Response:
        fields = await fields_of(request)
        secret, name = fields.get("secret", ""), fields.get("name", "")
        try:
            password, caller = fields.get("password", ""), caller_of(request)
            cookie = await self._sign_in.link_with_password(secret, name, password, caller)
        except (BadInput, SignInRefused) as error:
            return await self._choice(request, secret, name, str(error))
        return signed_in(request, RedirectResponse("/", SEE_OTHER), cookie)

    async def _link_options(self, request: Request, given: Mapping[str, Any]) -> Mapping[str, Any]:
        link = await self._sign_in.find_link(text_in(given, "secret"))
        name = person_name(text_in(given, "name")) if link.name is None else link.name
        challenge = await self._sign_in.challenges.new(link_purpose(link))
        return registration_options(_named_site(request), challenge, link.person_id or link.id, name, ())

    async def _link_with_passkey(self, request: Request, given: Mapping[str, Any]) -> Response:
        secret, name, credential = text_in(given, "secret"), text_in(given, "name"), credential_in(given)
        caller = caller_of(request)
        cookie = await self._sign_in.link_with_passkey(secret, name, _named_site(request), credential, caller)
        return _enter(request, given, cookie)

    # Once more

    async def _show_again(self, request: Request) -> Response:
        to = destination(request.query_params.get("to"))
        live = session_of(request)
        if live is None:
            return RedirectResponse(f"/sign-in?to={quote(to)}", SEE_OTHER)
        return await self._again_page(request, live, to)

    async def _ask_again(self, request: Request, live: LiveSession, form: KeptForm) -> Response:
        """Ask somebody who has sent a form to prove who they are first; it stays with the page."""
        kept = self._forms.seal(live, form)
        return sent_to_prove(form.back) if kept is None else await self._again_page(request, live, form.back, kept)

    async def _again_with_password(self, request: Request) -> Response:
        fields, to, kept, live = await self._again_fields(request)
        try:
            cookie = await self._sign_in.again_with_password(
                live, fields.get("password", ""), fields.get("code", ""), caller_of(request)
            )
        except SignInRefused as refused:
            return await self._again_page(request, live, to, kept, refused)
        if not kept:
            return signed_in(request, RedirectResponse(to, SEE_OTHER), cookie)
        fresh = replace(live, visitor=replace(live.visitor, is_fresh=True), cookie=cookie or live.cookie)
        return signed_in(request, await self._carry_out(request, fresh, to, kept), cookie)

    async def _carry_out_kept(self, request: Request) -> Response:
        """Carry out a form after its sender has used a passkey."""
        _, to, kept, live = await self._again_fields(request)
        if not live.visitor.is_fresh:
            return await self._again_page(request, live, to, kept)
        return await self._carry_out(request, live, to, kept)

    async def _again_fields(self, request: Request) -> tuple[Mapping[str, str], str, str, LiveSession]:
        """Return the fields, the page to go back to, the kept form if there is one, and the session."""
        fields = await fields_of(request, LARGEST_FORM if session_of(request) is None else LARGEST_AGAIN)
        to, kept = destination(fields.get("to")), fields.get("kept", "")
        try:
            return fields, to, kept, checked_session(request, fields, back=to)
        except SentAway as away:
            if kept:
                say(away.response, Said("Nothing was done: your session had ended. Send it again.", "bad"))
            raise

    async def _carry_out(self, request: Request, live: LiveSession, to: str, kept: str) -> Response:
        """Carry out a form whose sender has proved who they are: once, as if sent now. If too old, show it again."""
        try:
            form, late = await self._forms.open(live, kept)
            carry_out = self._site.again_forms.get(form.address)
            if carry_out is None:
                raise SignInRefused("Nothing was done: Postroom was updated meanwhile. Send it again.")
        except SignInRefused as refused:
            return say(RedirectResponse(to, SEE_OTHER), Said(str(refused), "bad"))
        return await carry_out(request, live, form, late)

    async def _again_options(self, request: Request, given: Mapping[str, Any]) -> Mapping[str, Any]:
        live = checked_session(request, given, back="/")
        return sign_in_options(_named_site(request), await self._sign_in.challenges.new(again_purpose(live)))

    async def _again_with_passkey(self, request: Request, given: Mapping[str, Any]) -> Response:
        live = checked_session(request, given, back="/")
        credential, caller = credential_in(given), caller_of(request)
        cookie = await self._sign_in.again_with_passkey(live, _named_site(request), credential, caller)
        return _enter(request, given, cookie)

    async def _again_page(
        self, request: Request, live: LiveSession, to: str, kept: str = "", refused: SignInRefused | None = None
    ) -> Response:
        text = self._site.render(
            "sign_in/again.html",
            to=to,
            kept=kept,
            own=await self._own.show(live),
            visitor=live.visitor,
            form_token=masked_form_token(live.visitor),
            refused=refused,
            **place(request),
        )
        return _refused_page(text, refused)

    async def _sign_out(self, request: Request) -> Response:
        live = checked_session(request, await fields_of(request), back="/")
        await self._own.end_session(live, live.kept.id, signature_of(live.visitor, "signed out"))
        return signed_out(request, RedirectResponse("/sign-in", SEE_OTHER))


def answering(endpoint: Endpoint) -> Endpoint:
    """The endpoint, whose visitor may be sent to another page."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except SentAway as away:
            return away.response

    return answer


def scripted(endpoint: Callable[[Request, Mapping[str, Any]], Awaitable[Response | Mapping[str, Any]]]) -> Endpoint:
    """An endpoint for the page's script: JSON in, JSON out, errors as a sentence."""

    async def answer(request: Request) -> Response:
        try:
            done = await endpoint(request, await sent_by_script(request))
        except SentAway as away:
            return JSONResponse({"error": "Prove again who you are.", "to": away.to}, UNAUTHORIZED)
        except SignInRefused as refused:
            return JSONResponse({"error": str(refused)}, _status(refused), _retry_after(refused))
        except PostroomError as error:
            if not isinstance(error, BadInput):
                raise
            return JSONResponse({"error": str(error)}, BAD_REQUEST)
        return done if isinstance(done, Response) else JSONResponse(dict(done))

    return answer


def place(request: Request) -> Mapping[str, object]:
    """The part of the address that templates show: its host, and whether passkeys can be used there."""
    site = site_of(request)
    port = f":{port_of(request)}" if port_of(request) else ""
    instead = f"http://localhost{port}{request.url.path}" if site.host in ("127.0.0.1", "::1") else ""
    return {"host": site.host, "can_have_passkeys": site.can_have_passkeys, "instead": instead}


def text_in(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name, "")
    return found if isinstance(found, str) else ""


def credential_in(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer that the browser made with a passkey. Only its shape is checked here."""
    credential: Any = given.get("credential")
    if not isinstance(credential, dict) or not isinstance(cast("dict[str, Any]", credential).get("response"), dict):
        raise BadInput("passkey", "is missing", "try again")
    return cast("dict[str, Any]", credential)


def _named_site(request: Request) -> SiteAddress:
    site = site_of(request)
    if not site.can_have_passkeys:
        raise BadInput("passkey", f"browsers make none for {site.host}", "open the pages by a name, with https")
    return site


def _enter(request: Request, given: Mapping[str, Any], cookie: NewCookie | None) -> Response:
    return signed_in(request, JSONResponse({"to": destination(given.get("to"))}), cookie)


def _refused_page(text: str, refused: SignInRefused | None) -> Response:
    if refused is None:
        return HTMLResponse(text)
    return HTMLResponse(text, _status(refused), _retry_after(refused))


def _status(refused: SignInRefused) -> int:
    return UNAUTHORIZED if refused.retry_after_s is None else TOO_MANY


def _retry_after(refused: SignInRefused) -> dict[str, str]:
    return {} if refused.retry_after_s is None else {"Retry-After": str(max(1, round(refused.retry_after_s)))}
