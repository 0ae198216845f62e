"""The visitor of a request. Sign-in puts one into the request's scope; where it is off, everyone is the owner."""

import secrets

from starlette.requests import HTTPConnection

from postroom.core.visitors import Visitor
from postroom.operations.people.audit import Signature, signature

VISITOR = "postroom.visitor"
"""The key of the visitor in the scope of a request."""
OWNER = Visitor("owner", "admin", secrets.token_urlsafe(24))
ON_THE_PAGE = "on the page"


def visitor_of(request: HTTPConnection) -> Visitor:
    return request.scope.get(VISITOR, OWNER)


def signature_of(visitor: Visitor, reason: str = ON_THE_PAGE) -> Signature:
    """Return the person's signature for the audit log."""
    return signature(f"person:{visitor.name}", visitor.role, reason)
