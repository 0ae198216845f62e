"""A connector's request server: requests are handled, unknown ones are answered, and errors do not end it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from postroom.core.errors import BadInput, LeaseLost, PostroomError, SwitchboardUnavailable
from postroom.sources.request_server import RequestServer
from postroom.sources.switchboard_client import ConnectorRequest
from support.patience import PATIENCE_S


def asked(kind: str = "sync_now", **arguments: Any) -> ConnectorRequest:
    return ConnectorRequest(uuid4(), uuid4(), kind, arguments, timedelta(minutes=5))


class Switchboard:
    """Hands out what it was given, one after another, and writes down the answers; an error is raised instead."""

    def __init__(self, *given: ConnectorRequest | list[ConnectorRequest] | PostroomError) -> None:
        self.given = list(given)
        self.answers: list[tuple[str, object]] = []
        self.stop = asyncio.Event()
        self.emptied = asyncio.Event()
        self.news = asyncio.Event()
        self.stays = False
        self.asked = 0
        self.lost = False
        self.refuses: list[PostroomError] = []

    async def requests(self, wait: timedelta) -> list[ConnectorRequest]:
        self.asked += 1
        if not self.given:
            self.emptied.set()
            if not self.stays:
                self.stop.set()
            return []
        match self.given.pop(0):
            case ConnectorRequest() as request:
                return [request]
            case list() as requests:
                return requests
            case error:
                raise error

    async def reply(self, request: ConnectorRequest, result: Mapping[str, Any]) -> None:
        if self.refuses:
            raise self.refuses.pop()
        self.answered("result", result)

    async def fail(self, request: ConnectorRequest, error: str) -> None:
        self.answered("error", error)

    def answered(self, how: str, what: object) -> None:
        self.answers.append((how, what))
        self.news.set()
        if self.lost:
            raise LeaseLost("too late")


async def sync(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if "bug" in arguments:
        raise arguments["bug"]
    if "broken" in arguments:
        raise PostroomError("postgresql://ada:kanarienvogel@h/d is away")
    return {"ingested": arguments.get("expected", 0)}


async def run(switchboard: Switchboard) -> list[tuple[str, object]]:
    async with asyncio.timeout(PATIENCE_S):
        await RequestServer(switchboard, {"sync_now": sync}).run(switchboard.stop, after_error=timedelta(0))
    return switchboard.answers


async def test_what_is_asked_is_done_and_answered():
    assert await run(Switchboard(asked(expected=3), asked())) == [
        ("result", {"ingested": 3}),
        ("result", {"ingested": 0}),
    ]


async def test_what_a_connector_cannot_do_it_says():
    assert await run(Switchboard(asked("search"))) == [("error", "this connector does not know how to search")]


async def test_what_went_wrong_is_reported_without_passwords():
    [(how, what)] = await run(Switchboard(asked(broken=True)))
    assert how == "error"
    assert "is away" in str(what)
    assert "kanarienvogel" not in str(what)


async def test_an_answer_that_comes_too_late_is_no_trouble():
    switchboard = Switchboard(asked(), asked())
    switchboard.lost = True
    assert len(await run(switchboard)) == 2


async def test_a_switchboard_that_is_away_is_asked_again():
    assert len(await run(Switchboard(SwitchboardUnavailable("away"), asked()))) == 1


async def test_a_switchboard_that_does_not_wait_is_not_asked_without_end():
    switchboard = Switchboard()
    switchboard.stays = True
    running = asyncio.create_task(RequestServer(switchboard, {}).run(switchboard.stop))
    async with asyncio.timeout(PATIENCE_S):
        await switchboard.emptied.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        switchboard.stop.set()
        await running
    assert switchboard.asked == 1


async def test_one_that_takes_long_holds_up_no_other():
    go_on = asyncio.Event()

    async def search(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        await go_on.wait()
        return {"found": 1}

    switchboard = Switchboard(asked("search"), asked())
    setup = RequestServer(switchboard, {"search": search, "sync_now": sync}, beside=1)
    switchboard.stays = True
    running = asyncio.create_task(setup.run(switchboard.stop))
    async with asyncio.timeout(PATIENCE_S):
        await switchboard.emptied.wait()
        assert switchboard.answers == [("result", {"ingested": 0})]
        go_on.set()
        while len(switchboard.answers) < 2:
            switchboard.news.clear()
            await switchboard.news.wait()
        switchboard.stop.set()
        await running
    assert switchboard.answers[1] == ("result", {"found": 1})


async def test_what_is_under_way_beside_ends_with_the_desk():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def search(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    switchboard = Switchboard(asked("search"))
    switchboard.stays = True
    running = asyncio.create_task(RequestServer(switchboard, {"search": search}, beside=2).run(switchboard.stop))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        running.cancel()
        await asyncio.wait({running})
    assert ended.is_set()


@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize("bug", [ZeroDivisionError("kanarienvogel"), OSError(28, "kanarienvogel"), KeyError("x")])
async def test_a_bug_is_reported_by_its_kind_alone_and_ends_nothing(bug: Exception, beside: int):
    switchboard = Switchboard([asked(bug=bug), asked(expected=2)])
    switchboard.stays = True
    running = asyncio.create_task(RequestServer(switchboard, {"sync_now": sync}, beside).run(switchboard.stop))
    with capture_logs() as logs:
        async with asyncio.timeout(PATIENCE_S):
            await switchboard.emptied.wait()
            while len(switchboard.answers) < 2:
                switchboard.news.clear()
                await switchboard.news.wait()
            switchboard.stop.set()
            await running
    kind = type(bug).__name__
    assert sorted(switchboard.answers, key=str) == [
        ("error", f"{kind} in the connector; its log says where"),
        ("result", {"ingested": 2}),
    ]
    (broke,) = [each for each in logs if each["event"] == "connector.request_broke"]
    assert (broke["error"], broke["at"].startswith("test_request_server.py:")) == (kind, True)
    assert "kanarienvogel" not in str(logs)


async def test_an_answer_that_does_not_arrive_drops_none_of_the_others():
    switchboard = Switchboard([asked(), asked(expected=2)])
    switchboard.refuses = [SwitchboardUnavailable("away")]
    assert await run(switchboard) == [("result", {"ingested": 2})]


async def test_an_answer_that_is_refused_is_reported_as_a_failure():
    switchboard = Switchboard(asked())
    switchboard.refuses = [BadInput("result", "takes 2,000,000 characters as JSON", "use at most 1,048,576")]
    [(how, what)] = await run(switchboard)
    assert (how, "takes 2,000,000 characters" in str(what)) == ("error", True)
