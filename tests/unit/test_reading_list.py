"""The list of messages that are still to be read: its order, and that it survives."""

from pathlib import Path

import pytest

from postroom.core.queue.envelope import PolicyTier
from postroom.mailboxes.following import reading_list
from postroom.mailboxes.following.index_file import IndexFile
from postroom.mailboxes.following.reading_list import SCHEMA, FoundMessage, ReadingList


def opened(path: Path | None = None) -> ReadingList:
    return ReadingList(IndexFile(path, SCHEMA, "full"))


def found(*ids: str, tier: PolicyTier = "default", thread: str = "") -> list[FoundMessage]:
    return [FoundMessage(id, thread, tier) for id in ids]


def numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def read(waiting: ReadingList, most: int) -> list[str]:
    picked = waiting.next(most)
    waiting.done(picked)
    return picked.ids


def read_all(waiting: ReadingList, most: int) -> list[str]:
    order: list[str] = []
    while part := read(waiting, most):
        order += part
    return order


def test_urgent_mail_comes_first_and_without_others_behind_it() -> None:
    waiting = opened()
    waiting.add(found(*numbered("news", 50)))
    waiting.raise_tier("interactive", ids=["news7"])
    waiting.raise_tier("high_priority", ids=["news40", "news3", "unknown"])
    picked = waiting.next(25)
    assert picked[:2] == (["news3", "news40"], True)
    waiting.done(picked)
    assert "news7" in read(waiting, 25)


def test_however_much_is_urgent_other_mail_gets_its_turn() -> None:
    waiting = opened()
    waiting.add(found(*numbered("a", 300), tier="high_priority"))
    waiting.add(found(*numbered("b", 300), tier="interactive"))
    waiting.add(found(*numbered("c", 300)))
    order = "".join(id[0] for id in read_all(waiting, 1))
    assert order[:12] == "aaaaaaaaaaba"
    assert order.index("c") <= 111
    assert len(order) == 900


def test_the_streaks_survive_so_that_restarts_starve_nothing(tmp_path: Path) -> None:
    waiting = opened(tmp_path / "to_read.db")
    waiting.add(found(*numbered("a", 40), tier="high_priority"))
    waiting.add(found("c"))
    order: list[str] = []
    for _ in range(11):
        order += read(opened(tmp_path / "to_read.db"), 1)
    assert order.index("c") == 10


def test_within_a_tier_the_newest_and_the_oldest_take_turns() -> None:
    waiting = opened()
    waiting.add(found(*numbered("m", 6)))
    assert [read(waiting, 1) for _ in range(3)] == [["m5"], ["m0"], ["m4"]]
    assert read(waiting, 2) == ["m1", "m3"], "within what is read together, the order of arrival"


def test_a_flood_under_the_names_of_contacts_keeps_neither_the_newest_nor_the_oldest_waiting() -> None:
    waiting = opened()
    waiting.add(found("first", *numbered("forged", 5_000), "last", tier="high_priority"))
    assert {"first", "last"} <= set(read(waiting, 25))


def test_mail_that_was_there_before_is_read_newest_first_beside_what_comes() -> None:
    waiting = opened()
    waiting.add_older(found("d", "c"))
    waiting.add_older(found("b", "a"))
    assert waiting.has_older
    waiting.add(found("e", "f"))
    assert read_all(waiting, 3) == ["e", "f", "d", "c", "b", "a"]
    assert not waiting.has_older


def test_conversations_are_raised_and_nothing_is_lowered() -> None:
    waiting = opened()
    waiting.add([*found("a", tier="high_priority"), *found("b", "c", thread="t")])
    assert waiting.raise_tier("interactive", ids=["a", "b"]) == 1
    assert waiting.raise_tier("high_priority", threads=["t", ""]) == 2
    assert waiting.count("high_priority") == 3


def test_what_was_not_done_is_there_after_a_kill_and_nothing_is_on_it_twice(tmp_path: Path) -> None:
    first = opened(tmp_path / "to_read.db")
    assert first.add(found("a", "b", "c")) == 3
    picked = first.next(2)
    again = opened(tmp_path / "to_read.db")
    assert again.next(2) == picked
    assert again.add(found("b", "c", "d")) == 1
    again.done(picked)
    again.discard(["d"])
    assert len(again) == 1
    assert again.next(5).ids == [({"a", "b", "c"} - {*picked.ids}).pop()]


def test_a_list_that_was_lost_has_another_name(tmp_path: Path) -> None:
    file = tmp_path / "to_read.db"
    name = opened(file).name
    assert opened(file).name == name
    file.write_bytes(b"no database")
    for suffix in ("-wal", "-shm"):
        file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)
    assert opened(file).name != name


def test_the_users_own_mail_is_marked() -> None:
    waiting = opened()
    waiting.add_older(found("c", "b", "a"))
    waiting.mark_own(["a", "c", "x"])
    assert waiting.own(5) == ["c", "a"]


def test_the_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_list, "MOST", 3)
    waiting = opened()
    waiting.add(found("a", "b"))
    assert not waiting.is_full
    waiting.add(found("c"))
    assert waiting.is_full
