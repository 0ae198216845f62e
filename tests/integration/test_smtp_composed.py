"""The SMTP transport as the settings describe it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from postroom.compose.smtp import smtp_options, smtp_transport
from postroom.core.errors import SettingsError
from postroom.core.outbound.destinations import SigningKey, StsPolicy
from postroom.outbound.smtp.options import SmtpOptions, Timeouts
from postroom.settings.delivery import DeliverySettings
from postroom.settings.reading import load_settings
from postroom_sandbox.smtp_server import SmtpServer
from support.smtp import CONTENT, delivered, dns_server, zone_of


def settings(tmp_path: Path, **given: Any) -> DeliverySettings:
    overrides = {f"delivery.{name}": value for name, value in given.items()}
    return load_settings({"data_dir": tmp_path, **overrides}, environ={}).delivery


class Nothing:
    """Keeps no policy, and has a key for one domain."""

    async def kept(self, domain: str) -> StsPolicy | None:
        return None

    async def keep(self, domain: str, policy: StsPolicy) -> None:
        raise AssertionError(domain)

    async def keys_of(self, domain: str) -> Sequence[SigningKey]:
        return [SigningKey(domain, "s1", "ed25519-sha256", b"k" * 32)]


async def test_mail_goes_signed_to_the_smart_host_of_the_settings(tmp_path: Path):
    async with SmtpServer() as server:
        delivery = settings(
            tmp_path, smart_host="127.0.0.1", smart_host_port=server.port, smart_host_tls="opportunistic"
        )
        async with smtp_transport(delivery, Nothing(), Nothing()) as transport:
            [outcome] = await delivered(transport, "ada@example.org")
    assert outcome.result == "sent"
    [mail] = server.received
    assert mail.content.startswith(b"DKIM-Signature: v=1; a=ed25519-sha256;")
    assert mail.content.endswith(CONTENT)


def test_the_defaults_are_those_of_the_standard(tmp_path: Path):
    options = smtp_options(settings(tmp_path, hostname="out.sender.example"))
    assert options == SmtpOptions("out.sender.example")
    assert options.timeouts == Timeouts()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"smart_host_username": "mara"}, "both delivery.smart_host_username and delivery.smart_host_password"),
        ({"connections_first": 30}, "at least delivery.connections_first"),
        ({"dns_servers": "one.example"}, "addresses such as 192.0.2.53"),
        ({"dns_servers": "192.0.2.53,127.0.0.1:0"}, r"and '127.0.0.1:0' is none"),
        ({"dns_servers": "127.0.0.1:65536"}, "ports from 1 to 65535"),
        ({"dns_servers": "127.0.0.1:dns"}, "addresses such as"),
        ({"dns_servers": "[127.0.0.1]:53"}, "addresses such as"),
        ({"dns_servers": "[::1"}, "addresses such as"),
        ({"dns_servers": "[::1]:"}, "addresses such as"),
        ({"hostname": "two words"}, "the name of a host"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, given: dict[str, Any], problem: str):
    with pytest.raises(SettingsError, match=problem):
        settings(tmp_path, **given)


def test_dns_servers_may_have_a_port(tmp_path: Path):
    given = settings(tmp_path, dns_servers="192.0.2.53, 127.0.0.1:5353, 2001:db8::53, [::1]:5353, [::1]")
    assert given.name_servers == (
        ("192.0.2.53", 53),
        ("127.0.0.1", 5353),
        ("2001:db8::53", 53),
        ("::1", 5353),
        ("::1", 53),
    )


async def test_a_dns_server_on_another_port_is_asked(tmp_path: Path):
    async with SmtpServer() as server, dns_server(zone_of()) as (resolver, _):
        delivery = settings(
            tmp_path,
            dns_servers=f"127.0.0.1:{resolver.port}",
            port=server.port,
            allow_private_networks=True,
            mta_sts=False,
        )
        async with smtp_transport(delivery, Nothing(), Nothing()) as transport:
            [outcome] = await delivered(transport, "ada@example.org")
    assert outcome.result == "sent"
