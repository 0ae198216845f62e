"""Host names in requests, normalised for comparison."""

import pytest

from postroom.core.hosts import bare_name, hostname


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("localhost:8025", "localhost"),
        ("LocalHost.:8025", "localhost"),
        ("[::1]:8025", "::1"),
        ("[::1]", "::1"),
        ("mail.example:https", "mail.example:https"),
        ("mail.example:\u0661", "mail.example:\u0661"),
        ("mail.example:", "mail.example:"),
        ("8025", "8025"),
    ],
)
def test_a_host_loses_its_port_and_nothing_else(host: str, name: str) -> None:
    assert hostname(host) == name


def test_a_name_is_compared_without_case_brackets_and_last_dot() -> None:
    assert bare_name(" Mail.Example. ") == "mail.example"
    assert bare_name("[2001:DB8::1]") == "2001:db8::1"
