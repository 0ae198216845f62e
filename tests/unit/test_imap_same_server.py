"""Whether two ways to a mail server lead to the same one."""

import pytest

from postroom.mailboxes.imap.same_server import is_same_machine, is_same_service, may_be_same_user
from postroom.mailboxes.imap.wire import Endpoint


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
    for first, second in ((Endpoint(*one), Endpoint(*other)), (Endpoint(*other), Endpoint(*one))):
        assert (is_same_service(first, second) and await is_same_machine(first, second)) is is_same


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        ("ada", "Ada", True),
        ("ada", "ada@example.com", True),
        ("ada@example.com", "ada@example.org", False),
        ("ada", "adam@example.com", False),
        ("ada@example.com", "ada", True),
    ],
)
def test_a_user_may_be_named_with_the_domain_or_without(one: str, other: str, may_be: bool) -> None:
    assert may_be_same_user(one, other) is may_be
