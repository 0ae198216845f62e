"""Whether two ways to a mail server lead to the same one."""

import pytest

from postroom.imap.same_server import is_same_server
from postroom.imap.wire import Endpoint


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("imap.example.invalid", 993), ("IMAP.example.invalid.", 993), True),
        (("imap.example.invalid", 993), ("imap.example.invalid", 143), True),
        (("imap.example.invalid", 993), ("imap.example.invalid", 1993), False),
        (("localhost", 993), ("127.0.0.1", 143), True),
        (("127.0.0.1", 993), ("::1", 993), True),
        (("::ffff:192.0.2.1", 993), ("192.0.2.1", 993), True),
        (("192.0.2.1", 993), ("192.0.2.2", 993), False),
    ],
)
async def test_a_server_is_known_by_its_name_its_addresses_and_its_ports(
    one: tuple[str, int], other: tuple[str, int], is_same: bool
) -> None:
    assert await is_same_server(Endpoint(*one), Endpoint(*other)) is is_same
    assert await is_same_server(Endpoint(*other), Endpoint(*one)) is is_same
