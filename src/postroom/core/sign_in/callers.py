"""The origin of a sign-in, as a person's list of sessions shows it: a browser, and a part of an address.

A whole address or User-Agent would say more about a person than they need to recognise their own sessions.
"""

import ipaddress
import re
from dataclasses import dataclass

_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
LONGEST = 40


@dataclass(frozen=True, slots=True)
class SignInCaller:
    """The sender of a request: the whole address, to count tries, and the stored parts of it and of the browser."""

    address: str
    browser: str = "unknown browser"

    @property
    def network(self) -> str:
        return shortened(self.address)

    @property
    def counted(self) -> str:
        """The address under which tries are counted: for IPv6 its /64, since one machine gets all of it."""
        parsed = _parse(self.address)
        if parsed is None or parsed.version == 4:
            return self.address if parsed is None else str(parsed)
        return str(ipaddress.ip_network((parsed, 64), strict=False))


def shortened(address: str) -> str:
    """The network of the address: /24 for IPv4, /48 for IPv6; this machine as such."""
    parsed = _parse(address)
    if parsed is None:
        return "unknown address"
    if parsed.is_loopback:
        return "this machine"
    return str(ipaddress.ip_network((parsed, 24 if parsed.version == 4 else 48), strict=False))


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def browser_of(user_agent: str) -> str:
    """The browser and the system, such as `Firefox on Linux`."""
    browser = next((name for sign, name in _BROWSERS if sign in user_agent), "")
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    product = re.match(r"[A-Za-z][A-Za-z0-9._-]*", user_agent)
    return product[0][:LONGEST] if product else "unknown browser"
