"""The HTTP application: the pages, the other endpoints, and plain error pages."""

from collections.abc import Collection, Sequence
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from postroom.interfaces.dashboard.declared_forms import declared_forms
from postroom.interfaces.dashboard.installable import WORKER
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.api.operation import PREFIX
from postroom.interfaces.http.json_api_errors import error_form, is_of_api
from postroom.interfaces.http.proxies import TrustedProxies
from postroom.interfaces.http.security import SECURITY_HEADERS, HostCheck, SecurityHeaders
from postroom.operations.problems import INTERNAL


def create_application(
    site: Site,
    pages: Sequence[DashboardPage],
    *,
    allowed_hosts: Collection[str],
    routes: Sequence[BaseRoute] = (),
    own_doors: Sequence[str] = (),
    proxies: Sequence[str] = (),
    only_tls: bool = False,
    gate: Middleware | None = None,
) -> Starlette:
    """Create the application from the pages and the product's other routes.

    `allowed_hosts` are names without port. Any other Host is refused; the routes in `own_doors` check that themselves.
    `proxies` are believed who the visitor is. The `gate` asks for a sign-in.
    """
    app = Starlette(
        routes=[
            *sorted([*declared_forms(site), *(route for page in pages for route in page.routes())], key=_named_parts),
            Route("/static/{digest}/{name:path}", site.asset),
            Route(WORKER, site.worker),
            Route("/healthz", _healthz),
            *routes,
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(TrustedProxies, proxies=proxies, only_tls=only_tls),
            Middleware(HostCheck, allowed_hosts=allowed_hosts, own_doors=own_doors),
            *([] if gate is None else [gate]),
        ],
    )
    app.router.redirect_slashes = False
    app.state.pages = pages
    _answer_errors_plainly(app, site)
    return app


def _named_parts(route: Route) -> list[bool]:
    """Return which parts of the path have names. Sorted by it, the page `/rules/new` comes before `/rules/{rule}`."""
    return ["{" in part for part in route.path.split("/")]


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _words(error: Exception) -> str:
    """Return the sentence that was written for the reader, if there is one: by default it is just the status."""
    if not isinstance(error, HTTPException) or error.detail == HTTPStatus(error.status_code).phrase:
        return ""
    return error.detail


def _api_error(status: int) -> object:
    match status:
        case 404:
            return error_form("not_found", "there is nothing at this path", "path", f"see GET {PREFIX}/openapi.json")
        case 405:
            return error_form("bad_method", "is not answered at this path", "method", f"see GET {PREFIX}/openapi.json")
        case _:
            return error_form(INTERNAL.code, INTERNAL.problem, INTERNAL.field, INTERNAL.remedy)


def _answer_errors_plainly(app: Starlette, site: Site) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
        if is_of_api(request.url.path):
            return JSONResponse(_api_error(status), status, headers)
        return HTMLResponse(site.error(status, _words(error)), status_code=status, headers=headers)

    async def broken(request: Request, error: Exception) -> Response:
        # Starlette sends this response outside of all middleware, so it sets the headers itself.
        if is_of_api(request.url.path):
            return JSONResponse(_api_error(500), 500, SECURITY_HEADERS)
        return HTMLResponse(site.error(500), status_code=500, headers=SECURITY_HEADERS)

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, broken)
