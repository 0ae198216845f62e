"""Settings of the pages: where they are served, who may see them, and the limits of their connections."""

import ipaddress

from pydantic import Field, ValidationInfo, field_validator

from postroom.core.hosts import LOCAL_NAMES, bare_name
from postroom.settings.checks import both_or_neither
from postroom.settings.sections import Names, Seconds, Section, Whole


class WebSettings(Section):
    host: str = Field("127.0.0.1", min_length=1, description="The address the pages are served on.")
    port: Whole = Field(8025, ge=0, le=65535, description="The port the pages are served on; 0 takes any free one.")
    allowed_hosts: Names = Field(
        ("127.0.0.1", "localhost", "[::1]"),
        min_length=1,
        description="Host names that the pages answer to; requests for other names are refused.",
    )
    sign_in: bool = Field(
        True,
        description="Ask everyone who opens the pages to sign in. Without it, everyone who can reach them is the "
        "owner, so they are served on loopback only.",
    )
    session_idle_minutes: Whole = Field(
        30, ge=1, le=43_200, description="Minutes without a click after which somebody is signed out."
    )
    session_hours: Whole = Field(12, ge=1, le=720, description="Hours after which somebody is signed out in any case.")
    tls_certificate: str | None = Field(
        None, min_length=1, description="The certificate of the pages with those of its authority, in PEM."
    )
    tls_key: str | None = Field(None, min_length=1, description="The private key of the certificate, in PEM.")
    trusted_proxies: Names = Field(
        (),
        description="Addresses or networks of reverse proxies, such as `10.0.0.2,10.1.0.0/16`. Only these are believed "
        "who the visitor is (`X-Forwarded-For`, `-Proto`, `-Host`); they must speak TLS to the visitor.",
    )
    localhost_only: bool = Field(
        False,
        description="Serve on any address without TLS, but answer only to `localhost`: for a container whose port is "
        "published on the machine's own loopback. Without effect once there is a certificate or a trusted proxy.",
    )
    allow_unprotected_bind: bool = Field(
        False,
        description="Serve `telemetry.listen` where other machines can reach it, though metrics name your mailboxes.",
    )
    max_connections: Whole = Field(
        512, ge=4, le=65_536, description="Connections at the same time; fewer if the open file limit is low."
    )
    max_connections_per_address: Whole = Field(
        256, ge=2, le=65_536, description="Connections at the same time from one address (for IPv6, one /64)."
    )
    max_headers: Whole = Field(100, ge=10, le=1000, description="Headers in one request.")
    max_header_kib: Whole = Field(
        32, ge=4, le=1024, description="Size of a request's address and headers together, in KiB."
    )
    first_byte_s: Seconds = Field(
        10.0, gt=0, le=3600, description="Seconds in which a new connection must send its first byte."
    )
    headers_s: Seconds = Field(
        10.0, gt=0, le=3600, description="Seconds from the first byte of a request to the end of its headers."
    )
    body_s: Seconds = Field(60.0, gt=0, le=3600, description="Seconds from the end of the headers to that of the body.")
    keep_alive_s: Seconds = Field(
        15.0, gt=0, le=3600, description="Seconds a connection may be idle between two requests."
    )
    answer_s: Seconds = Field(
        60.0,
        gt=0,
        le=3600,
        description="Seconds for which a client may stop reading its answer, event streams included.",
    )

    _certificate = both_or_neither("web", "tls_certificate", "tls_key")

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            try:
                ipaddress.ip_network(each)
            except ValueError:
                raise ValueError(f"addresses or networks, and {each!r} is none: 10.0.0.2 or 10.1.0.0/16") from None
        return value

    @field_validator("localhost_only")
    @classmethod
    def _names_need_tls(cls, value: bool, info: ValidationInfo) -> bool:
        others = [each for each in info.data.get("allowed_hosts", ()) if bare_name(each) not in LOCAL_NAMES]
        if value and others and not (info.data.get("tls_certificate") or info.data.get("trusted_proxies")):
            raise ValueError(
                f"false, or TLS: to answer to {others[0]}, set web.tls_certificate and web.tls_key, or name your "
                "reverse proxy in web.trusted_proxies"
            )
        return value

    @property
    def has_tls(self) -> bool:
        """Whether visitors come over TLS: to a certificate of ours, or to a reverse proxy."""
        return self.tls_certificate is not None or bool(self.trusted_proxies)

    @property
    def is_localhost_only(self) -> bool:
        """Whether visitors come without TLS, from this machine, though the address is one that others can reach."""
        return self.localhost_only and not self.has_tls

    @property
    def may_be_exposed(self) -> bool:
        """Whether the address may be one that other machines can reach: the pages ask who looks at them, and nobody
        can listen in, since a visitor comes over TLS or to `localhost`.
        """
        return self.sign_in and (self.has_tls or self.localhost_only)
