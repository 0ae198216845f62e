"""Settings of delivery by SMTP. `docs/reference/delivery.md` explains them."""

from typing import Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from postroom.core.hosts import DnsServer, read_dns_server
from postroom.settings.checks import both_or_neither, form
from postroom.settings.sections import Names, Seconds, Section, Whole

_HOST = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]"


class DeliverySettings(Section):
    hostname: str | None = Field(
        None,
        description="The name by which this server introduces itself to others, with a DNS record that leads back to "
        "it; without it, the name of the machine.",
    )
    own_names: Names = Field(
        (), description="Other names of this server that an MX record may have; mail that would come back is refused."
    )
    smart_host: str | None = Field(
        None, description="A server that takes all mail and delivers it, instead of the servers of each recipient."
    )
    smart_host_port: Whole = Field(587, ge=1, le=65_535, description="The port of the smart host.")
    smart_host_tls: Literal["implicit", "required", "opportunistic"] = Field(
        "required",
        description="How the smart host is spoken to: encrypted from the first byte (`implicit`), after STARTTLS "
        "(`required`), or so only if it offers it (`opportunistic`). In the first two its certificate is checked.",
    )
    smart_host_username: str | None = Field(None, min_length=1, description="The login at the smart host.")
    smart_host_password: SecretStr | None = Field(None, description="The password for that login.")
    port: Whole = Field(25, ge=1, le=65_535, description="The port of the servers of recipients.")
    tls: Literal["opportunistic", "required"] = Field(
        "opportunistic",
        description="Encrypt where the other server offers it, or send no mail without encryption and a valid "
        "certificate. A mail can require it for itself.",
    )
    tls_ca_file: str | None = Field(
        None, description="A file with certificates of authorities that are trusted beside the system's."
    )
    mta_sts: bool = Field(True, description="Honour the MTA-STS policies of recipients' domains.")
    allow_private_networks: bool = Field(
        False, description="Deliver to servers on private networks, if the DNS says so. The smart host may be on one."
    )
    address_families: Literal["both", "ipv4", "ipv6"] = Field(
        "both", description="The versions of the Internet Protocol that this server can send with."
    )
    dns_servers: Names = Field(
        (),
        description="Addresses of DNS servers, each with a port if it is not 53 (`192.0.2.53`, `127.0.0.1:5353`, "
        "`[::1]:5353`); without them, those of the system.",
    )
    connections_first: Whole = Field(
        5, ge=1, le=1000, description="Transactions at the same time with a destination about which nothing is known."
    )
    connections_most: Whole = Field(
        20, ge=1, le=1000, description="Transactions at the same time with one destination, however well it takes them."
    )
    slow_s: Seconds = Field(
        30.0, gt=0, le=3600, description="Seconds for a transaction above which a destination gets fewer at once."
    )
    keep_messages: Whole = Field(100, ge=1, le=10_000, description="Mails that are sent over one connection.")
    keep_idle_s: Seconds = Field(
        5.0, ge=0, le=300, description="Seconds that a connection is kept for the next mail to its destination."
    )
    connect_s: Seconds = Field(30.0, gt=0, le=3600, description="Seconds for a connection to be made.")
    greeting_s: Seconds = Field(300.0, gt=0, le=3600, description="Seconds for the greeting, and for EHLO.")
    command_s: Seconds = Field(300.0, gt=0, le=3600, description="Seconds for the whole reply to MAIL, RCPT and AUTH.")
    data_s: Seconds = Field(120.0, gt=0, le=3600, description="Seconds for the whole reply to DATA.")
    block_s: Seconds = Field(
        180.0, gt=0, le=3600, description="Seconds for a part of the content to be read by the other server."
    )
    final_s: Seconds = Field(
        600.0,
        gt=0,
        le=3600,
        description="Seconds for the reply to the content. If it does not come, it is unknown whether the mail was "
        "taken.",
    )

    unknown: Literal["ask", "resend"] = Field(
        "ask",
        description="Mail that the server may or may not have taken: a person decides (`ask`), or it is sent again, "
        "and may arrive twice (`resend`).",
    )

    _hosts = form("hostname", "smart_host", pattern=_HOST, allowed="the name of a host, such as mail.example.com")

    @field_validator("dns_servers")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if read_dns_server(each) is None:
                raise ValueError(
                    "addresses such as 192.0.2.53, 127.0.0.1:5353 or [::1]:5353, with ports from 1 to 65535, separated "
                    f"by commas, and {each[:60]!r} is none"
                )
        return value

    _login = both_or_neither("delivery", "smart_host_username", "smart_host_password")

    @field_validator("connections_most")
    @classmethod
    def _at_least_the_first(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("connections_first", 1):
            raise ValueError("at least delivery.connections_first")
        return value

    @property
    def name_servers(self) -> tuple[DnsServer, ...]:
        return tuple(found for each in self.dns_servers if (found := read_dns_server(each)) is not None)
