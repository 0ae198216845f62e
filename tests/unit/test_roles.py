"""Which channels a connector is for, and which agents are bound to an account."""

from uuid import uuid4

import pytest

from postroom.core.roles import CHANNELS, Principal, Role, channels_of


@pytest.mark.parametrize(
    ("identity", "channels"),
    [
        ("gmail:user:a@b.example", {"email"}),
        ("IMAP:user:a@b.example", {"email"}),
        ("email:x", {"email"}),
        ("telegram:bot:1", {"telegram"}),
        ("webhook:ci", {"webhook"}),
        ("redis:events", CHANNELS - {"email"}),
        ("ci-server", CHANNELS - {"email"}),
    ],
)
def test_an_endpoint_is_for_its_own_channel_and_only_mailboxes_are_for_mail(identity: str, channels: set[str]) -> None:
    assert channels_of(identity) == channels
    assert Principal(Role.CONNECTOR, identity).allowed_channels == channels


def test_channels_that_somebody_chose_take_the_place_of_those_of_the_identity() -> None:
    chosen = frozenset({"slack"})
    assert Principal(Role.CONNECTOR, "gmail:user:a@b.example", channels=chosen).allowed_channels == chosen
    assert Principal(Role.CONNECTOR, channels=chosen).allowed_channels == chosen
    none = Principal(Role.CONNECTOR, "gmail:user:a@b.example", channels=frozenset())
    assert none.allowed_channels == frozenset()


def test_whoever_is_bound_to_no_endpoint_may_deliver_every_channel() -> None:
    assert Principal(Role.ADMIN).allowed_channels == CHANNELS


def test_only_an_agent_with_an_account_is_a_bound_agent() -> None:
    assert Principal(Role.AGENT, account_id=uuid4()).is_bound_agent
    assert not Principal(Role.AGENT).is_bound_agent
    assert not Principal(Role.ADMIN, account_id=uuid4()).is_bound_agent
