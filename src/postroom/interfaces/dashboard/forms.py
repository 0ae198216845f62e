"""Forms on a page: accepted only from our own page and from a person who may, then the page is shown again.

Three things are checked before anything is done. Browsers name the origin of a form in `Sec-Fetch-Site`, older ones in
`Origin`. The form has the token that was rendered for this very visitor. The visitor's role allows it, and for acts
that are hard to take back they proved who they are a few minutes ago.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom.core.access import Access
from postroom.core.errors import BadInput, IllegalMove, MailboxError, NotFound, Refused
from postroom.core.visitors import PersonRole, Visitor
from postroom.interfaces.dashboard.refused_forms import RefusedForm, in_sentences
from postroom.interfaces.dashboard.said import Said, say
from postroom.interfaces.dashboard.sign_in.visits import session_of
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import REFUSED, check_storable
from postroom.interfaces.dashboard.visiting import ON_THE_PAGE, signature_of, visitor_of
from postroom.operations.caller import Caller
from postroom.operations.people.form_tokens import is_form_token, masked_form_token
from postroom.operations.people.kept_forms import LARGEST_KEPT, KeptForm
from postroom.operations.people.sessions import LiveSession
from postroom.operations.registry import access_of_form

SEE_OTHER = 303
FORBIDDEN = 403
TOO_LARGE = 413
MOST_FIELDS = 2_000
IN_PLACE = "Postroom-In-Place"
"""The header of a form that a page sends without leaving, and of its answer."""
LARGEST_FORM = 2 * 1024 * 1024
AGAIN = "/sign-in/again"
EXPECTED = (BadInput, NotFound, Refused, IllegalMove, MailboxError)
"""Errors whose message is written for the person who filled in the form."""


@dataclass(frozen=True, slots=True)
class Form:
    """A submitted form that may be acted on."""

    fields: FormData
    parameters: Mapping[str, str]
    """The parts of the path that have names."""
    visitor: Visitor
    back: str
    """The address of the page that it was submitted from, filters included."""
    zone: ZoneInfo
    """The time zone of whoever sent it: days in it begin there."""
    by: Caller
    """Who asks for the change: the person, with the reason in the form if there is one."""

    def text(self, name: str) -> str:
        """Return the field, without spaces around it; an empty text without one."""
        given = self.fields.get(name, "")
        return given.strip() if isinstance(given, str) else ""

    def exact(self, name: str) -> str:
        """Return the field as it is, for passwords: spaces at its ends may belong to it."""
        given = self.fields.get(name, "")
        return given if isinstance(given, str) else ""

    def required(self, name: str, remedy: str) -> str:
        given = self.text(name)
        if not given:
            raise BadInput(name, "is empty", remedy)
        return given

    def texts(self, name: str) -> list[str]:
        """Return all fields of this name, such as the ticked rows."""
        return [given for given in self.fields.getlist(name) if isinstance(given, str) and given]

    def is_ticked(self, name: str) -> bool:
        return self.text(name) not in ("", "off", "false")

    def multi_items(self) -> list[tuple[str, str]]:
        """Return the fields without uploaded files, each name as often as it was sent."""
        return [(name, value) for name, value in self.fields.multi_items() if isinstance(value, str)]

    def kept(self, address: str) -> KeptForm | None:
        """Return the form as it can be kept; None with uploaded files."""
        fields = self.multi_items()
        is_whole = len(fields) == len(self.fields.multi_items())
        return KeptForm(address, self.parameters, fields, self.back) if is_whole else None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The sentence to show after a form, and the page to show it on: by default the one it was submitted from."""

    sentence: str
    to: str | None = None
    action: str = ""
    """The id of the action; a link beside the sentence opens its message."""
    is_undoable: bool = False
    rejected: Sequence[UUID] = ()
    """The actions whose rejection a button beside the sentence takes back."""


Submit = Callable[[Form], Awaitable[Confirmation | Response]]
Explain = Callable[[Exception, Form], tuple[str, str]]
"""Returns the name of the field that an error is about, empty if about none, and the problem in the page's words."""


def _keeps_all(_name: str) -> bool:
    return False


def explained(error: Exception, form: Form, names: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str]:
    """Return the field and the problem as errors name them; `names` are the form's, by those of operations."""
    if isinstance(error, BadInput) and (
        error.field in form.fields or error.field in names or error.problem == "is empty"
    ):
        return names.get(error.field, error.field), in_sentences(error)
    return "", str(error)


class FormRoute(Route):
    """The route of a form, and who may submit it."""

    def __init__(self, address: str, submitted: Callable[[Request], Awaitable[Response]], access: Access) -> None:
        super().__init__(address, submitted, methods=["POST"])
        self.access = access


def form_route(
    site: Site,
    address: str,
    submit: Submit,
    access: Access | None = None,
    *,
    reason: str = ON_THE_PAGE,
    is_secret: Callable[[str], bool] = _keeps_all,
    explain: Explain = explained,
) -> FormRoute:
    """Return the route that accepts the form at this address.

    Access is that of the operation which declares the form; a form that no operation declares has its own.
    `reason` is what the person signs with where the form names none. Where the access asks for a fresh proof, people
    prove who they are, unless they did so a few minutes ago; the form is carried out after that.
    An error that is meant for people is shown on the page that the form was on, at the field that `explain` names; the
    form has its fields again, but for those that are secret.
    """
    allowed = access or access_of_form(address)
    role = allowed.person

    async def submitted(request: Request) -> Response:
        try:
            return await answered(request)
        finally:
            await request.close()  # of uploaded files

    async def answered(request: Request) -> Response:
        form = admit(*await _check_form(request, role), site.zone_of(request))
        if not allowed.is_fresh or form.visitor.is_fresh:
            return await carry_out(form, is_in_place=IN_PLACE in request.headers)
        live, kept = session_of(request), form.kept(address)
        if site.ask_again is None or live is None or kept is None:
            return sent_to_prove(form.back)
        return await site.ask_again(request, live, kept)

    async def repeated(request: Request, live: LiveSession, kept: KeptForm, late: str) -> Response:
        _check_role(live.visitor, role)
        if late:
            return refuse(site, live.visitor, kept, ("", late), is_secret)
        zone = site.zone_of(request)
        return await carry_out(admit(FormData([*kept.fields]), kept.parameters, live.visitor, kept.back, zone))

    def admit(fields: FormData, parameters: Mapping[str, str], visitor: Visitor, back: str, zone: ZoneInfo) -> Form:
        given = fields.get("reason")
        signed = signature_of(visitor, given.strip() if isinstance(given, str) and given.strip() else reason)
        return Form(fields, parameters, visitor, back, zone, Caller(site.parts.database, signed, site.parts.clock))

    async def carry_out(form: Form, *, is_in_place: bool = False) -> Response:
        try:
            done = await submit(form)
        except EXPECTED as error:
            field, problem = explain(error, form)
            if is_in_place:
                return told(form, None, Said(problem, "bad"), is_in_place)
            kept = KeptForm(address, form.parameters, form.multi_items(), form.back)
            return refuse(site, form.visitor, kept, (field, problem), is_secret)
        finally:
            site.look_again()
        if isinstance(done, Response):
            return done
        said = Said(done.sentence, action=done.action, is_undoable=done.is_undoable, rejected=done.rejected)
        return told(form, done.to, said, is_in_place)

    def told(form: Form, to: str | None, said: Said, is_in_place: bool) -> Response:
        """Lead to the page that says it; a page that stays where it is gets the sentence alone."""
        if to is not None or not is_in_place:
            return say(RedirectResponse(to or form.back, SEE_OTHER), said)
        toast = site.render("toast.html", said=said, back=form.back, form_token=masked_form_token(form.visitor))
        return HTMLResponse(toast, headers={IN_PLACE: "1"})

    if allowed.is_fresh:
        site.again_forms[address] = repeated
    return FormRoute(address, submitted, allowed)


def refuse(
    site: Site, visitor: Visitor, form: KeptForm, problem: tuple[str, str], is_secret: Callable[[str], bool]
) -> Response:
    """Lead back to the page of a form that is not carried out, where its fields are filled in again."""
    refused = RefusedForm.of(visitor.name, form.address, form.parameters, form.fields, problem, is_secret)
    if not refused.fields or refused.size > LARGEST_KEPT:
        return say(RedirectResponse(form.back, SEE_OTHER), Said(problem[1], "bad"))
    mark = "&" if "?" in form.back else "?"
    # Browsers give the focus to the wrong field only where the address names no other place.
    place = "" if refused.field else "#problem"
    to = f"{form.back}{mark}{REFUSED}={site.refused.keep(refused)}{place}"
    return say(RedirectResponse(to, SEE_OTHER), Said(problem[1], "bad"))


def sent_to_prove(back: str) -> Response:
    """Lead to the page to prove who one is, from a form that cannot be kept meanwhile."""
    response = RedirectResponse(f"{AGAIN}?to={quote(back)}", SEE_OTHER)
    return say(response, Said("Nothing was done before you confirmed it's you. Send the form again.", "bad"))


async def _check_form(request: Request, role: PersonRole) -> tuple[FormData, Mapping[str, str], Visitor, str]:
    """Return the fields, the parts of the path, the visitor and the page to go back to, if the form may be acted on."""
    if not is_from_own_page(request):
        raise HTTPException(FORBIDDEN)
    visitor = visitor_of(request)
    _check_role(visitor, role)
    if int(request.headers.get("content-length") or 0) > LARGEST_FORM:
        raise HTTPException(TOO_LARGE)
    fields = await request.form(max_files=10, max_fields=MOST_FIELDS, max_part_size=LARGEST_FORM)
    token = fields.get("form_token")
    if not isinstance(token, str) or not is_form_token(token, visitor):
        raise HTTPException(FORBIDDEN, detail="this form is from an older page: open the page again")
    for name, value in fields.multi_items():
        check_storable({name: value})
    back = fields.get("back")
    return fields, request.path_params, visitor, own_path(back if isinstance(back, str) else "")


def _check_role(visitor: Visitor, role: PersonRole) -> None:
    if not visitor.may(role):
        raise HTTPException(FORBIDDEN, detail=f"this needs the role {role}, and yours is {visitor.role}")


def own_path(address: str) -> str:
    """Return the address if it is a path on this site, otherwise the first page."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_path and "\\" not in address else "/"


def is_from_own_page(request: Request) -> bool:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    return site == "same-origin" if site is not None else _is_same(origin, request.headers.get("host"))


def _is_same(origin: str | None, host: str | None) -> bool:
    try:
        return origin is not None and host is not None and urlsplit(origin).netloc == host
    except ValueError:
        return False
