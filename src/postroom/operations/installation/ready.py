"""Ask a running Postroom on this machine whether it is ready."""

import http.client
import ssl

from postroom.core.errors import PostroomError
from postroom.settings.web import WebSettings
from postroom.system.http_server.listening import addresses_of

TIMEOUT_S = 8.0
OWN = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Where this machine reaches itself, by the address that stands for all of its addresses."""


def ask_ready(web: WebSettings) -> bool:
    """Return whether it is ready. Raises PostroomError if nothing answers."""
    address = addresses_of(web.host)[0]
    place = (OWN.get(address, address), web.port)
    if web.tls_certificate is None:
        connection = http.client.HTTPConnection(*place, timeout=TIMEOUT_S)
    else:
        # The certificate is for the name that visitors use, and it is ours: nothing is sent that it would protect.
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(*place, timeout=TIMEOUT_S, context=trusting)
    try:
        connection.request("GET", "/readyz", headers={"Host": web.allowed_hosts[0]})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        raise PostroomError(
            f"nothing answers at {web.host}:{web.port}; start `postroom serve`, or check web.host and web.port"
        ) from None
    finally:
        connection.close()
