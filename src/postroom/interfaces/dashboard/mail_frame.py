"""The HTML of a message as a document of its own, for a frame: it runs, loads, submits and opens nothing.

Three layers, each of which would do: the HTML is written anew (`core/mail/clean_html.py`), the document has a policy
that allows styles and enclosed images only, and both the policy and the frame's `sandbox` take away its origin.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom.core.errors import BadInput, NotFound
from postroom.interfaces.dashboard.compression import page_response
from postroom.interfaces.dashboard.site import Site
from postroom.operations.mail.mail_html import HtmlReader

ADDRESS = "/mail/{message}/html"
HEADERS = {
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
    # Browsers may look up the names of links ahead; the policy is not relied on to stop that.
    "X-DNS-Prefetch-Control": "off",
}


def frame_route(site: Site, reader: HtmlReader) -> Route:
    """Return the route of the frame's document."""

    async def shown(request: Request) -> Response:
        status, html, why_not = 200, None, ""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            status, why_not = 403, "This is only shown on Postroom's own page."
        else:
            try:
                html, why_not = (found := await reader.read(request.path_params["message"])).html, found.why_not
            except (NotFound, BadInput) as error:
                status, why_not = (404 if isinstance(error, NotFound) else 400), str(error)
        return page_response(request, site.render("mail/frame.html", html=html, why_not=why_not), status, HEADERS)

    return Route(ADDRESS, shown, methods=["GET"])
