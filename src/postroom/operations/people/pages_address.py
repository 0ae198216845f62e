"""Where the pages are opened in a browser: for one-time links."""

from urllib.parse import urlsplit

from postroom.core.hosts import LOCAL_NAMES, bare_name
from postroom.settings.reading import Settings
from postroom.system.http_server.listening import is_own_machine

ONCE = "/sign-in/once"


def link_address(settings: Settings, secret: str, served_at: str | None = None) -> str:
    """A one-time link. Its secret stands behind the `#`, which browsers keep to themselves."""
    return f"{pages_address(settings, served_at)}{ONCE}#{secret}"


def pages_address(settings: Settings, served_at: str | None = None) -> str:
    """The address of the pages: as the settings have it, or with the port at which they are really served.

    On this machine it is `localhost`, since browsers make passkeys for names only.
    """
    web, public = settings.web, settings.approvals.public_url
    if public is not None:
        return public.rstrip("/")
    port = web.port if served_at is None else urlsplit(served_at).port or web.port
    has_certificate = web.tls_certificate is not None
    shown_port = f":{port or 'PORT'}"
    if web.is_localhost_only or is_own_machine(web.host):
        named = "localhost" if "localhost" in web.allowed_hosts else web.host
        return f"{'https' if has_certificate else 'http'}://{named}{shown_port}"
    others = [each for each in web.allowed_hosts if bare_name(each) not in LOCAL_NAMES]
    return f"https://{others[0] if others else web.host}{shown_port if has_certificate else ''}"
