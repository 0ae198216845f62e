"""How the SMTP transport behaves, apart from its settings' form."""

import ssl
from dataclasses import dataclass, field
from typing import Literal

from postroom.core.outbound.pacing import PaceLimits

MOST_RECIPIENTS = 100


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for each phase, as RFC 5321, 4.5.3.2 asks. A reply must be complete within its time."""

    connect: float = 30.0
    greeting: float = 300.0
    ehlo: float = 300.0
    tls: float = 60.0
    mail: float = 300.0
    rcpt: float = 300.0
    data: float = 120.0
    block: float = 180.0
    """For a part of the content to be read by the other side."""
    final: float = 600.0
    """From the final dot to its reply."""
    quit: float = 5.0
    dns: float = 20.0
    policy: float = 60.0
    """For an MTA-STS policy, from the connection to the last byte."""


@dataclass(frozen=True, slots=True)
class SmartHost:
    """A server of the operator's choice that takes all mail and delivers it."""

    host: str
    port: int = 587
    tls: Literal["implicit", "required", "opportunistic"] = "required"
    username: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Reuse:
    """How long a connection is kept for the next mail to the same destination."""

    messages: int = 100
    idle_s: float = 5.0
    age_s: float = 300.0
    kept: int = 200
    """Idle connections to all destinations together."""


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    """`hostname` is how we introduce ourselves, and `own_names` are the names of ours that an MX may have."""

    hostname: str
    own_names: frozenset[str] = frozenset()
    port: int = 25
    smart_host: SmartHost | None = None
    require_tls: bool = False
    allow_private: bool = False
    families: tuple[Literal[4, 6], ...] = (6, 4)
    mta_sts: bool = True
    timeouts: Timeouts = field(default_factory=Timeouts)
    reuse: Reuse = field(default_factory=Reuse)
    pace: PaceLimits = field(default_factory=PaceLimits)
    longest_wait_s: float = 1.0
    """How long a mail waits for its destination's turn before it is given back to the queue."""
    most_addresses: int = 5
    """Addresses tried for one mail before it is deferred."""


@dataclass(frozen=True, slots=True)
class TlsContexts:
    """`checked` verifies certificate and name; `unchecked` only encrypts, which is better than nothing."""

    checked: ssl.SSLContext
    unchecked: ssl.SSLContext

    @classmethod
    def with_authorities(cls, ca_file: str | None = None) -> "TlsContexts":
        """Contexts that trust the system's authorities, and those in the file."""
        checked = ssl.create_default_context()
        if ca_file is not None:
            checked.load_verify_locations(ca_file)
        unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        return cls(checked, unchecked)
