"""Which tools exist for which caller."""

from uuid import uuid4

import pytest

from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.registry import ALL_TOOLS, tools_of

QUEUES = {"queue.next", "queue.ack", "queue.nack", "queue.peek", "queue.stats"}


def names(principal: Principal) -> set[str]:
    return {tool.name for tool in tools_of(principal)}


def test_no_two_operations_are_the_same_tool() -> None:
    assert len({tool.name for tool in ALL_TOOLS}) == len(ALL_TOOLS)


@pytest.mark.parametrize("role", Role)
def test_a_role_has_exactly_the_tools_that_list_it(role: Role) -> None:
    assert names(Principal(role)) == {tool.name for tool in ALL_TOOLS if role in tool.roles}


def test_no_agent_delivers_mail_or_replays_it() -> None:
    forbidden = {"ingest", "ingest.batch", "queue.replay", "credentials.access_token"}
    assert not names(Principal(Role.AGENT)) & forbidden


def test_for_an_agent_that_is_bound_to_one_account_there_are_no_queues() -> None:
    bound, free = Principal(Role.AGENT, account_id=uuid4()), Principal(Role.AGENT)
    assert names(free) - names(bound) == QUEUES
    assert names(bound) < names(free)


def test_only_the_queues_are_across_accounts_and_only_a_bound_agent_lacks_them() -> None:
    assert {tool.name for tool in ALL_TOOLS if tool.across_accounts} == QUEUES
    assert names(Principal(Role.ADMIN, account_id=uuid4())) == names(Principal(Role.ADMIN))
