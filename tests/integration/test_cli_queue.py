"""`postroom queue`: what waits and since when, as a table and as JSON, and past messages queued once more."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from postroom.intake.buffer import Buffer, Delivery
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.inbox import LeaseRef
from postroom.store.mail.mail import keep_account
from support.shell import Shell, with_empty_database
from support.switchboard import OWNER, envelope, mail

T = TypeVar("T")
NOBODY = "01997000-0000-7000-8000-000000000000"


def on_the_database(shell: Shell, use: Callable[[Database], Awaitable[T]]) -> T:
    """What a running product would do in the folder that the commands look at."""

    async def opened() -> T:
        database = await open_database(shell.folder / "postroom-data", None)
        try:
            return await use(database)
        finally:
            await database.close()

    found = asyncio.run(opened())
    shell.capture.readouterr()  # what the product logs meanwhile is none of the command's
    return found


def ingested(shell: Shell, envelopes: Sequence[dict[str, Any]], ago: timedelta = timedelta(0)) -> list[str]:
    """The ids of messages that were accepted so long ago."""

    async def ingest(database: Database) -> list[str]:
        intake = Intake(database, None, lambda: datetime.now(UTC) - ago)
        await database.run(keep_account(new_id(), "gmail", f"gmail:user:{OWNER}", OWNER, datetime.now(UTC)))
        return [str((await intake.ingest(each)).request_id) for each in envelopes]

    return on_the_database(shell, ingest)


def taken(shell: Shell, most: int, *, ack: bool = False) -> list[Delivery]:
    async def take(database: Database) -> list[Delivery]:
        buffer = Buffer(database)
        deliveries = await buffer.next("gateway", most)
        if ack:
            await buffer.ack([LeaseRef(each.message_id, each.lease_token) for each in deliveries])
        return deliveries

    return on_the_database(shell, take)


def tiers(shell: Shell) -> dict[tuple[str, str], dict[str, Any]]:
    assert shell("queue", "stats", "--json") == 0
    return {(row["queue"], row["tier"]): row for row in shell.json()}


def test_stats_tell_of_every_tier_of_every_queue_highest_first(shell: Shell):
    ingested(shell, [])
    assert shell("queue", "stats", "--json") == 0
    rows = shell.json()
    assert [(row["queue"], row["tier"]) for row in rows] == [
        *(("email", tier) for tier in ("high_priority", "interactive", "default", "history")),
        *(("gateway", tier) for tier in ("P0", "P1", "P2", "P3")),
    ]
    for row in rows:
        assert {name: row[name] for name in ("waiting", "leased", "oldest_waiting_at", "streak")} == {
            "waiting": 0,
            "leased": 0,
            "oldest_waiting_at": None,
            "streak": 0,
        }
    assert [row["guard"] for row in rows] == [10, 10, 10, 10, 3, 10, 10, 10]


def test_stats_count_what_waits_and_what_is_held(shell: Shell):
    ingested(shell, [envelope(number) for number in range(3)], ago=timedelta(minutes=2))
    ingested(shell, [mail(1, control={"policy_tier": "interactive"}), mail(2)])
    taken(shell, 1)
    found = tiers(shell)
    events = found["gateway", "P2"]
    assert (events["waiting"], events["leased"], events["streak"]) == (2, 1, 1)
    waited = datetime.now(UTC) - datetime.fromisoformat(events["oldest_waiting_at"])
    assert timedelta(minutes=2) <= waited < timedelta(minutes=3)
    assert (found["email", "interactive"]["waiting"], found["email", "default"]["waiting"]) == (1, 1)
    assert shell("queue", "stats") == 0
    lines = shell.out.splitlines()
    assert lines[0].split() == ["QUEUE", "TIER", "WAITING", "LEASED", "OLDEST", "WAITING", "AT", "STREAK", "GUARD"]
    assert len(lines) == 9
    (line,) = [line.split() for line in lines if line.split()[:2] == ["gateway", "P2"]]
    assert (line[2:4], line[-2:]) == (["2", "1"], ["1", "10"])
    assert lines[1].split() == ["email", "high_priority", "0", "0", "-", "0", "10"]


def test_stats_of_all_that_is_kept_count_the_ended_too(shell: Shell):
    ingested(shell, [envelope(number) for number in range(3)])
    taken(shell, 2, ack=True)
    assert shell("queue", "stats", "--kept", "--json") == 0
    assert shell.json() == [
        {"queue": "gateway", "tier": "P2", "state": "done", "messages": 2},
        {"queue": "gateway", "tier": "P2", "state": "waiting", "messages": 1},
    ]


def test_the_queues_are_those_of_the_settings(shell: Shell):
    (shell.folder / "postroom.toml").write_text('[queues.alarms]\ntiers = ["loud", "quiet"]\notherwise = "quiet"\n')
    ingested(shell, [])
    assert [tier for queue, tier in tiers(shell) if queue == "alarms"] == ["loud", "quiet"]
    assert shell("queue", "peek", "alarms", "--json") == 0
    assert shell.json() == []


def test_peek_shows_the_first_that_wait_and_takes_nothing(shell: Shell):
    ids = ingested(shell, [envelope("p2"), envelope("p1", event={"kind": "deploy.failed"})])
    shown: list[dict[str, Any]] = []
    for _ in range(2):
        assert shell("queue", "peek", "gateway", "--json") == 0
        shown = shell.json()
        assert [each["message_id"] for each in shown] == [ids[1], ids[0]]
    assert shown[0] | {"accepted_at": "", "envelope": {}} == {
        "message_id": ids[1],
        "queue": "gateway",
        "tier": "P1",
        "state": "waiting",
        "attempts": 0,
        "accepted_at": "",
        "kind": "deploy.failed",
        "channel": "webhook",
        "envelope": {},
    }
    assert shown[0]["envelope"]["event"]["external_event_id"] == "event-p1"
    assert datetime.fromisoformat(shown[0]["accepted_at"]).tzinfo is not None
    assert shell("queue", "peek", "gateway", "--limit", "1", "--json") == 0
    assert [each["message_id"] for each in shell.json()] == [ids[1]]


def test_peek_as_a_table_shows_the_beginning_of_the_text_on_one_line(shell: Shell):
    text = "first line\nsecond\x1b[2J line " + "x" * 100
    (id,) = ingested(shell, [envelope(1, payload={"normalized_text": text})])
    assert shell("queue", "peek", "gateway") == 0
    header, line = shell.out.splitlines()
    assert header.split() == ["MESSAGE", "ID", "TIER", "STATE", "ATTEMPTS", "ACCEPTED", "AT", "CHANNEL", "KIND", "TEXT"]
    assert line.startswith(f"{id}  P2    waiting  0")
    shown = line.partition("deploy.done  ")[2]
    assert shown.startswith("first line second\\x1b[2J line xxx")
    assert shown.endswith("x…")
    assert len(shown) < 70
    assert "\x1b" not in shell.out


def test_peek_of_an_empty_queue_is_an_empty_table(shell: Shell):
    ingested(shell, [])
    assert shell("queue", "peek", "gateway") == 0
    assert len(shell.out.splitlines()) == 1
    assert shell("queue", "peek", "gateway", "--json") == 0
    assert shell.out == ""


def test_replay_queues_copies_and_says_who_asked(shell: Shell):
    ids = ingested(shell, [envelope(number) for number in range(3)], ago=timedelta(hours=1))
    assert len(taken(shell, 3, ack=True)) == 3
    assert tiers(shell)["gateway", "P2"]["waiting"] == 0
    assert shell("queue", "replay", "gateway", "--since", "2h", "--json") == 0
    (told,) = shell.json()
    assert (told["queue"], told["replayed"], len(told["ids"])) == ("gateway", 3, 3)
    assert not set(told["ids"]) & set(ids)
    assert shell("queue", "peek", "gateway", "--json") == 0
    assert [each["message_id"] for each in shell.json()] == told["ids"]
    assert [each["envelope"]["payload"]["raw"]["number"] for each in shell.json()] == ["0", "1", "2"]
    assert shell("audit", "list", "--json") == 0
    (entry,) = shell.json()
    assert (entry["action"], entry["object_id"], entry["after"]["count"]) == ("queue.replay", "gateway", 3)
    assert (entry["actor"], entry["role"]) == (f"cli:{getpass.getuser()}", "admin")


def test_replay_takes_what_is_asked_for_and_no_more(shell: Shell):
    old = ingested(shell, [envelope("old", event={"kind": "deploy.failed"})], ago=timedelta(hours=3))
    new = ingested(shell, [envelope("new"), envelope("newer", event={"kind": "deploy.failed"})], timedelta(hours=1))
    taken(shell, 3, ack=True)

    def replayed(*arguments: str) -> list[str]:
        """The event ids of the copies, oldest first."""
        assert shell("queue", "replay", "gateway", *arguments, "--json") == 0
        copies = shell.json()[0]["ids"]
        assert shell("queue", "peek", "gateway", "--limit", "100", "--json") == 0
        shown = {each["message_id"]: each["envelope"]["event"]["external_event_id"] for each in shell.json()}
        return [shown[copy] for copy in copies]

    until = ("--until", "30m")
    assert replayed("--since", "2h", *until) == ["event-new", "event-newer"]
    assert replayed("--since", "4h", *until, "--kind", "deploy.failed") == ["event-old", "event-newer"]
    assert replayed("--since", "4h", *until, "--limit", "1") == ["event-old"]
    assert replayed("--since", "4h", "--until", "2h") == ["event-old"]
    assert replayed("--id", new[0], "--id", old[0]) == ["event-old", "event-new"]
    moment = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    assert replayed("--since", moment, *until, "--kind", "deploy.done", "--kind", "x") == ["event-new"]


def test_replay_of_nothing_is_reported_and_leaves_no_trace(shell: Shell):
    ingested(shell, [envelope(1)])
    assert shell("queue", "replay", "gateway", "--id", NOBODY) == 0
    assert shell.out == "queued once more in gateway: 0\n"
    assert shell("audit", "list", "--json") == 0
    assert shell.out == ""


def test_replay_tells_people_how_many(shell: Shell):
    ingested(shell, [envelope(1), envelope(2)], ago=timedelta(minutes=5))
    assert len(taken(shell, 2, ack=True)) == 2
    assert shell("queue", "replay", "gateway", "--since", "10m") == 0
    assert shell.out == "queued once more in gateway: 2\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("peek", "gatway"), "use one of email, gateway"),
        (("peek",), "QUEUE"),
        (("peek", "gateway", "--limit", "0"), "--limit"),
        (("peek", "gateway", "--limit", "101"), "--limit"),
        (("replay", "gateway"), "say where to start"),
        (("replay", "gateway", "--since", "soon"), "30d, 12h"),
        (("replay", "gateway", "--since", "2026-11-15T08:00:00"), "has no time zone"),
        (("replay", "gateway", "--since", "2h", "--until", "yesterday"), "--until"),
        (("replay", "gateway", "--since", "1h", "--until", "2h"), "earlier time"),
        (("replay", "gateway", "--since", "2h", "--limit", "10001"), "--limit"),
        (("replay", "gateway", "--id", "not-an-id"), "--id"),
        (("replay", "nowhere", "--since", "2h"), "use one of email, gateway"),
        (("drop", "gateway"), "drop"),
    ],
)
def test_a_wrong_question_is_answered_with_what_may_be_asked(shell: Shell, arguments: tuple[str, ...], complaint: str):
    ingested(shell, [])
    assert shell("queue", *arguments) == 2
    assert complaint in shell.err
    assert shell.out == ""
    assert "Traceback" not in shell.err


def test_a_database_without_a_schema_asks_for_the_migration(shell: Shell):
    with_empty_database(shell)
    for arguments in (("stats",), ("peek", "gateway"), ("replay", "gateway", "--since", "2h")):
        assert shell("queue", *arguments) == 1
        assert "run `postroom migrate`" in shell.err
        assert shell.out == ""
