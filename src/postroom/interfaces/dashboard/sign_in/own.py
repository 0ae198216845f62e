"""`/settings/sign-in`: a person's own password, codes, passkeys and sessions."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom.core.errors import BadInput, Conflict, NotFound, SignInRefused
from postroom.core.qr_code import qr_code
from postroom.core.visitors import Visitor
from postroom.interfaces.dashboard.forms import SEE_OTHER
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.refused_forms import RefusedForm, fill_in, in_sentences
from postroom.interfaces.dashboard.said import Said, forget_said, said_before, say
from postroom.interfaces.dashboard.sign_in.cookies import signed_in, signed_out
from postroom.interfaces.dashboard.sign_in.fields import checked_session, fields_of
from postroom.interfaces.dashboard.sign_in.pages import answering, credential_in, place, scripted, text_in
from postroom.interfaces.dashboard.sign_in.visits import session_of, site_of
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.visiting import signature_of, visitor_of
from postroom.operations.people.codes import checked_secret, codes_address, new_codes_secret
from postroom.operations.people.form_tokens import masked_form_token
from postroom.operations.people.kept_forms import KeptForm
from postroom.operations.people.own_sign_in import OwnWaysIn
from postroom.operations.people.sessions import LiveSession

ADDRESS = "/settings/sign-in"
CODE_OR_PASSWORD = ("code", "password").__contains__
Change = Callable[[Request, LiveSession, Mapping[str, str]], Awaitable[Response | str]]


def off_routes(site: Site) -> list[Route]:
    """The page where sign-in is off: it says so."""

    async def show(request: Request) -> Response:
        return HTMLResponse(site.render("sign_in/off.html", **await in_shell(site, request, visitor_of(request))))

    return [Route(ADDRESS, show, methods=["GET"])]


@dataclass(frozen=True, slots=True)
class Titled:
    """The frame around a page that is not live."""

    title: str


async def in_shell(site: Site, request: Request, visitor: Visitor, said: Said | None = None) -> Mapping[str, object]:
    """The values of the shell around a page that is not live."""
    visit = Visit(ADDRESS, {}, {}, visitor, site.zone_of(request))
    shared = {"account": await site.account(), "waiting": await site.waiting()}
    return {
        "page": Titled("Sign-in"),
        "visit": visit,
        "said": said,
        **shared,
        "form_token": masked_form_token(visitor),
        "zone": visit.zone,
    }


class OwnSignInPage:
    def __init__(self, site: Site, own: OwnWaysIn) -> None:
        self._site = site
        self._own = own

    def routes(self) -> list[Route]:
        changes: Mapping[str, Change] = {
            "password": self._set_password,
            "codes": self._turn_on_codes,
            "codes/off": self._turn_off_codes,
            "passkeys/remove": self._remove_passkey,
            "sessions/end": self._end_session,
            "sessions/end-others": self._end_others,
        }
        forms = [self._form(f"{ADDRESS}/{name}", change) for name, change in changes.items()]
        options, passkeys = scripted(self._passkey_options), scripted(self._add_passkey)
        return [
            Route(ADDRESS, self._show, methods=["GET"]),
            Route(f"{ADDRESS}/passkeys/options", options, methods=["POST"]),
            Route(f"{ADDRESS}/passkeys", passkeys, methods=["POST"]),
            *forms,
        ]

    def _form(self, address: str, change: Change) -> Route:
        """A form that changes something of the person's own: with their token, and after a fresh proof."""

        async def submitted(request: Request) -> Response:
            fields = await fields_of(request)
            live = checked_session(request, fields, back=ADDRESS)
            if live.visitor.is_fresh or self._site.ask_again is None:
                return await carry_out(request, live, fields)
            return await self._site.ask_again(request, live, KeptForm(address, {}, list(fields.items()), ADDRESS))

        async def repeated(request: Request, live: LiveSession, kept: KeptForm, late: str) -> Response:
            if late:
                return say(RedirectResponse(ADDRESS, SEE_OTHER), Said(late, "bad"))
            return await carry_out(request, live, dict(kept.fields))

        async def carry_out(request: Request, live: LiveSession, fields: Mapping[str, str]) -> Response:
            try:
                done = await change(request, live, fields)
            except (BadInput, Conflict, NotFound, SignInRefused) as error:
                field = error.field if isinstance(error, BadInput) and error.field in fields else ""
                problem = in_sentences(error) if isinstance(error, BadInput) and field else str(error)
                said = field, problem
                refused = RefusedForm.of(live.visitor.name, address, {}, [*fields.items()], said, CODE_OR_PASSWORD)
                return await self._page(request, live, refused=refused, secret=fields.get("secret", ""))
            return done if isinstance(done, Response) else RedirectResponse(f"{ADDRESS}?done={done}", SEE_OTHER)

        self._site.again_forms[address] = repeated
        return Route(address, answering(submitted), methods=["POST"])

    async def _show(self, request: Request) -> Response:
        live = session_of(request)
        if live is None:
            return RedirectResponse(f"/sign-in?to={ADDRESS}", SEE_OTHER)
        return await self._page(request, live, done=request.query_params.get("done", ""))

    async def _page(
        self,
        request: Request,
        live: LiveSession,
        *,
        done: str = "",
        refused: RefusedForm | None = None,
        secret: str = "",
    ) -> Response:
        try:
            offered = checked_secret(secret)
        except BadInput:
            offered = new_codes_secret()
        said = said_before(request)
        own, app_address = await self._own.show(live), codes_address(offered, live.visitor.name, site_of(request).host)
        text = self._site.render(
            "sign_in/own.html",
            own=own,
            visitor=live.visitor,
            done=done,
            problem="" if refused is None or refused.field else refused.problem,
            secret=offered,
            app_address=app_address,
            qr=qr_code(app_address) if own.has_password and not own.has_codes else None,
            **await in_shell(self._site, request, live.visitor, said),
            **place(request),
        )
        if refused is not None and refused.field:
            text = fill_in(text, refused)
        response = HTMLResponse(text, 400 if refused else 200)
        return response if said is None else forget_said(response)

    async def _set_password(self, request: Request, live: LiveSession, fields: Mapping[str, str]) -> Response | str:
        cookie = await self._own.set_password(live, fields.get("password", ""), signature_of(live.visitor))
        return signed_in(request, RedirectResponse(f"{ADDRESS}?done=password", SEE_OTHER), cookie)

    async def _turn_on_codes(self, _request: Request, live: LiveSession, fields: Mapping[str, str]) -> str:
        await self._own.turn_on_codes(
            live, fields.get("secret", ""), fields.get("code", ""), signature_of(live.visitor)
        )
        return "codes-on"

    async def _turn_off_codes(self, _request: Request, live: LiveSession, _fields: Mapping[str, str]) -> str:
        await self._own.turn_off_codes(live, signature_of(live.visitor))
        return "codes-off"

    async def _remove_passkey(self, _request: Request, live: LiveSession, fields: Mapping[str, str]) -> str:
        await self._own.remove_passkey(live, _id(fields), signature_of(live.visitor))
        return "passkey-removed"

    async def _end_session(self, request: Request, live: LiveSession, fields: Mapping[str, str]) -> Response | str:
        id = _id(fields)
        await self._own.end_session(live, id, signature_of(live.visitor))
        if id == live.kept.id:
            return signed_out(request, RedirectResponse("/sign-in", SEE_OTHER))
        return "session-ended"

    async def _end_others(self, _request: Request, live: LiveSession, _fields: Mapping[str, str]) -> str:
        await self._own.end_other_sessions(live, signature_of(live.visitor))
        return "others-ended"

    async def _passkey_options(self, request: Request, given: Mapping[str, Any]) -> Mapping[str, Any]:
        live = checked_session(request, given, back=f"{ADDRESS}?done=proven", fresh=True)
        return await self._own.passkey_options(live, site_of(request))

    async def _add_passkey(self, request: Request, given: Mapping[str, Any]) -> Response:
        live = checked_session(request, given, back=f"{ADDRESS}?done=proven", fresh=True)
        credential, name = credential_in(given), text_in(given, "name")
        await self._own.add_passkey(live, site_of(request), credential, name, signature_of(live.visitor))
        return JSONResponse({"to": f"{ADDRESS}?done=passkey-added"})


def _id(fields: Mapping[str, str]) -> UUID:
    return read_id(fields.get("id", ""), BadInput("id", "is missing", "open the page again"))
