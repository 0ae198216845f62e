"""The visitor of a request. Sign-in puts one into the request's scope; where it is off, everyone is the owner."""

import secrets

from starlette.requests import HTTPConnection

from postroom.core.visitors import Visitor

VISITOR = "postroom.visitor"
"""The key of the visitor in the scope of a request."""
OWNER = Visitor("owner", "admin", secrets.token_urlsafe(24))


def visitor_of(request: HTTPConnection) -> Visitor:
    return request.scope.get(VISITOR, OWNER)
