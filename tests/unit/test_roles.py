"""Who may call what, and which channels a connector is for."""

from uuid import uuid4

import pytest

from postroom.core.roles import (
    ACROSS_ACCOUNTS,
    CHANNELS,
    TOOLS,
    Principal,
    Role,
    channels_of,
    is_of_other_accounts,
    tools_of,
)


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


@pytest.mark.parametrize("role", Role)
def test_a_role_has_exactly_the_tools_that_are_listed_for_it(role: Role) -> None:
    assert tools_of(Principal(role)) == {tool for tool in TOOLS if role in TOOLS[tool]}


def test_no_agent_delivers_mail_replays_it_or_ends_a_pause() -> None:
    forbidden = {"ingest", "ingest.batch", "queue.replay", "credentials.access_token", "mutations.resume"}
    assert not tools_of(Principal(Role.AGENT)) & forbidden


def test_for_an_agent_that_is_bound_to_one_account_there_are_no_queues() -> None:
    bound, free = Principal(Role.AGENT, account_id=uuid4()), Principal(Role.AGENT)
    assert tools_of(free) - tools_of(bound) == ACROSS_ACCOUNTS
    assert tools_of(bound) < tools_of(free)


def test_only_the_queues_and_only_for_a_bound_agent_are_of_other_accounts() -> None:
    bound, admin = Principal(Role.AGENT, account_id=uuid4()), Principal(Role.ADMIN, account_id=uuid4())
    assert {tool for tool in TOOLS if is_of_other_accounts(bound, tool)} == ACROSS_ACCOUNTS
    for other in (Principal(Role.AGENT), admin, Principal(Role.ADMIN)):
        assert not any(is_of_other_accounts(other, tool) for tool in TOOLS)
    assert tools_of(admin) == tools_of(Principal(Role.ADMIN))
