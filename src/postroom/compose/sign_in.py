"""Compose sign-in: the gate in front of the pages, the pages to sign in, the first link, and the certificate."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute

from postroom.core.errors import SettingsError
from postroom.core.sign_in.session_times import SessionLimits
from postroom.interfaces.dashboard.sign_in.own import OwnSignInPage, off_routes
from postroom.interfaces.dashboard.sign_in.pages import SignInPages
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import OWNER, VISITOR
from postroom.interfaces.http.api.operation import PREFIX as API
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.sign_in import LOOK_EVERY_S, OwnerGate, SignInGate
from postroom.interfaces.http.switchboard import DOORS
from postroom.operations.installation.vault import vault_of
from postroom.operations.people.kept_forms import KeptForms
from postroom.operations.people.own_sign_in import OwnWaysIn
from postroom.operations.people.owner_token import owner_token
from postroom.operations.people.pages_address import link_address
from postroom.operations.people.people import offer_first_link
from postroom.operations.people.sessions import Sessions
from postroom.operations.people.sign_in import SignIn
from postroom.outbound.submission.certificates import (
    LOOK_EVERY_S as CERTIFICATE_LOOK_EVERY_S,
)
from postroom.outbound.submission.certificates import (
    BadCertificate,
    Certificates,
)
from postroom.settings.reading import Settings
from postroom.settings.web import WebSettings
from postroom.store.engine.database import Database

SELF_CHECKING = (*DOORS, "/v1", "/hooks")
"""Paths whose callers are no people: each checks tokens or signatures itself."""


@dataclass(frozen=True, slots=True)
class SignInParts:
    """The middleware that tells who the visitor is, and the routes."""

    gate: Middleware
    routes: Sequence[BaseRoute] = ()


@contextlib.asynccontextmanager
async def opened_sign_in(settings: Settings, services: Services, site: Site) -> AsyncGenerator[SignInParts]:
    web = settings.web
    if not web.sign_in:
        owner = replace(OWNER, form_token=await asyncio.to_thread(owner_token, settings.data_dir))
        yield SignInParts(Middleware(OwnerGate, owner=owner), off_routes(site))
        return
    limits = SessionLimits(timedelta(minutes=web.session_idle_minutes), timedelta(hours=web.session_hours))
    sessions = Sessions(services.database, limits, services.clock)
    vault = vault_of(settings)
    sign_in = SignIn(services.database, vault, sessions, clock=services.clock)
    own = OwnWaysIn(services.database, vault, sign_in, services.clock)
    gate = Middleware(
        SignInGate,
        sessions=sessions,
        tokens=services.token_check,
        doors=SELF_CHECKING,
        guests=(API,),
        look_every_s=LOOK_EVERY_S,
    )
    try:
        pages = SignInPages(site, sign_in, own, KeptForms(services.database, services.clock))
        yield SignInParts(gate, [*pages.routes(), *OwnSignInPage(site, own).routes()])
    finally:
        sign_in.close()


async def first_link(settings: Settings, database: Database, address: str) -> str | None:
    """Return the link for the first person; None if there is one already, or sign-in is off."""
    secret = await offer_first_link(database) if settings.web.sign_in else None
    return None if secret is None else link_address(settings, secret, address)


def knows_visitor(request: Request) -> bool:
    """Whether the request is from somebody who has signed in."""
    return VISITOR in request.scope


@contextlib.asynccontextmanager
async def certificates_of(web: WebSettings) -> AsyncGenerator[ssl.SSLContext | None]:
    """The certificate of the pages, read again when its files change; None if there is none."""
    if web.tls_certificate is None or web.tls_key is None:
        yield None
        return
    try:
        certificates = Certificates(Path(web.tls_certificate), Path(web.tls_key), what="web")
    except BadCertificate as error:
        problem = f"the certificate or its key cannot be used: {error}"
        raise SettingsError(f"web.tls_certificate: {problem}; give PEM files that belong together") from None
    renewing = asyncio.create_task(certificates.refresh_forever(CERTIFICATE_LOOK_EVERY_S), name="postroom-certificates")
    try:
        yield certificates.context
    finally:
        renewing.cancel()
