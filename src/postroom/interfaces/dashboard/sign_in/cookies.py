"""The cookie of a session.

Its name begins with `__Host-`: browsers then accept it only with `Secure`, for this very host and the whole site, so no
other site can plant one. They make no difference between the ports of a host, so the name has the port: two Postrooms
on one machine do not sign each other out.
"""

from http.cookies import SimpleCookie

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response

from postroom.operations.people.sessions import NewCookie

PREFIX = "__Host-postroom"


def cookie_name(request: HTTPConnection) -> str:
    port = port_of(request)
    return f"{PREFIX}-{port}" if port else PREFIX


def port_of(request: HTTPConnection) -> str:
    """The port in the browser's address; empty if it is the usual one, which the address does not name."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return port if port.isascii() and port.isdecimal() and len(port) <= 5 else ""


def session_cookie(request: HTTPConnection) -> str:
    """The text of the cookie; empty without one."""
    return request.cookies.get(cookie_name(request), "")


def signed_in(request: HTTPConnection, response: Response, cookie: NewCookie | None) -> Response:
    """The response, with the cookie if there is a new one."""
    if cookie is not None:
        set_session_cookie(request, response.headers, cookie)
    return response


def signed_out(request: HTTPConnection, response: Response) -> Response:
    """The response, with which the browser forgets the cookie, and everything that it keeps of the pages.

    Its other cookies stay: a browser would clear those of every Postroom on this host.
    """
    response.headers.append("set-cookie", _text(cookie_name(request), "", 0))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


def set_session_cookie(request: HTTPConnection, headers: MutableHeaders, cookie: NewCookie) -> None:
    seconds = max(1, int(cookie.lives.total_seconds()))
    headers.append("set-cookie", _text(cookie_name(request), cookie.text, seconds))


def _text(name: str, value: str, seconds: int) -> str:
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    for key, setting in {"path": "/", "max-age": seconds, "secure": True, "httponly": True, "samesite": "Lax"}.items():
        cookie[name][key] = setting
    return cookie[name].OutputString()
