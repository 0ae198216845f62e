"""Which addresses belong to the public network: only there is mail of strangers' domains delivered."""

from ipaddress import ip_address

import pytest

from postroom.core.outbound.destinations import is_public


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "193.0.14.129",
        "2001:4860:4860::8888",
        "2a01:4f8::1",
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_addresses_of_the_public_network_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:10.0.0.1",
        "::ffff:0:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "64:ff9b:1:ffff::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:a00:1::1",
        "2002:7f00:1::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_addresses_for_special_purposes_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
