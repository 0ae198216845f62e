"""What the Gmail connector keeps between its lives: checkpoint, ids handed in, refusals, what was spent."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from conftest import ManualClock
from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.changes import changes_in
from postroom.connectors.gmail.handed_in import HandedIn
from postroom.connectors.gmail.live import same_mailbox
from postroom.connectors.gmail.refused import RefusedMail
from postroom.connectors.gmail.spending import RememberedQuota
from postroom.core.errors import BadInput
from postroom.gmail.resources import HistoryRecord, LabelChange, MessageRef
from postroom.gmail.terms import Terms


def test_a_checkpoint_is_what_was_written_last(tmp_path: Path, clock: ManualClock):
    checkpoint = Checkpoint(tmp_path / "here" / "checkpoint.json")
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.looking_back_from()) == (None, None, None)
    checkpoint.write(7, clock())
    checkpoint.begin_to_look_back(9)
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.looking_back_from()) == (7, clock(), 9)
    checkpoint.write(9)
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.looking_back_from()) == (9, None, None)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b'{"history_id": true}', b'{"history_id": "x"}', b'{"history_id": [1]}', b"\xff", b"{}"],
)
def test_a_checkpoint_that_makes_no_sense_is_none(tmp_path: Path, content: bytes):
    (tmp_path / "checkpoint.json").write_bytes(content)
    checkpoint = Checkpoint(tmp_path / "checkpoint.json")
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.looking_back_from()) == (None, None, None)


def test_what_was_handed_in_is_known_in_the_next_life(tmp_path: Path):
    first = HandedIn(tmp_path / "ids")
    first.add(["a", "b"])
    first.add(["b", "c"])
    again = HandedIn(tmp_path / "ids")
    assert all(id in again for id in "abc")
    assert len(again) == 3


def test_a_line_that_a_crash_cut_off_is_not_taken_for_an_id(tmp_path: Path):
    (tmp_path / "ids").write_text("18c0ffee\n18c0")
    found = HandedIn(tmp_path / "ids")
    assert "18c0ffee" in found
    assert "18c0" not in found


def test_only_the_newest_are_remembered_and_the_file_stays_small(tmp_path: Path):
    found = HandedIn(tmp_path / "ids", most=10)
    for number in range(1000):
        found.add([str(number)])
    assert len(found) == 10
    assert "999" in found
    assert "989" not in found
    assert len((tmp_path / "ids").read_text().splitlines()) <= 20
    assert "999" in HandedIn(tmp_path / "ids", most=10)


def test_a_refusal_is_remembered_without_words_of_the_message(tmp_path: Path, clock: ManualClock):
    refused = RefusedMail(tmp_path, clock)
    refused.remember("18c0", BadInput("payload.raw\n", "holds 'my secret'", "do not"))
    refused.remember("18c1", ValueError("my secret"))
    told = (tmp_path / "refused.jsonl").read_text()
    assert "secret" not in told
    assert '"reason":"BadInput: payload.raw?"' in told
    assert RefusedMail(tmp_path, clock).count == 2


def test_of_each_label_the_last_thing_that_happened_is_told():
    ref = MessageRef("m", "t", frozenset({"INBOX"}))
    records = [
        HistoryRecord(1, labels_removed=(LabelChange(ref, frozenset({"UNREAD"})),)),
        HistoryRecord(2, labels_added=(LabelChange(ref, frozenset({"UNREAD", "STARRED"})),)),
        HistoryRecord(3, labels_removed=(LabelChange(ref, frozenset({"STARRED"})),)),
    ]
    (report,) = changes_in(records).reports()
    assert report == {
        "message_id": "m",
        "labels_added": ["UNREAD"],
        "labels_removed": ["STARRED"],
        "deleted": False,
    }


def test_what_was_added_and_deleted_is_not_read():
    ref = MessageRef("m", "t", frozenset({"INBOX"}))
    page = changes_in([HistoryRecord(1, messages_added=(ref,)), HistoryRecord(2, messages_deleted=(ref,))])
    assert list(page.to_read) == []
    assert page.reports()[0]["deleted"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Mara.Lindqvist@gmail.com", "maralindqvist@googlemail.com", True),
        ("MARA@lindqvist.example", "mara@lindqvist.example", True),
        ("m.ara@lindqvist.example", "mara@lindqvist.example", False),
        ("mara@lindqvist.example", "ida@lindqvist.example", False),
    ],
)
def test_a_mailbox_is_known_by_googles_rules_for_addresses(one: str, other: str, same: bool):
    assert same_mailbox(one, other) is same


class Minutes:
    """Time that is moved by hand, and alarms that are not needed."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Minutes:
    return Minutes()


def quota_in(folder: Path, time: Minutes) -> RememberedQuota:
    return RememberedQuota(folder / "quota", Terms(per_minute=1000, reserve=100), wall=time, clock=time, rng=Random(1))


async def test_what_a_killed_process_spent_counts_for_the_next(tmp_path: Path, time: Minutes):
    first = quota_in(tmp_path, time)
    async with first.admitted("messages.get", 700):
        pass
    first.close()
    time.seconds += 30
    again = quota_in(tmp_path, time)
    async with again.admitted("messages.get", 100):
        assert again.spent() == 800
    again.close()


async def test_a_minute_later_it_counts_no_more(tmp_path: Path, time: Minutes):
    first = quota_in(tmp_path, time)
    async with first.admitted("messages.get", 700):
        pass
    first.close()
    time.seconds += timedelta(seconds=71).total_seconds()
    again = quota_in(tmp_path, time)
    async with again.admitted("messages.get", 100):
        assert again.spent() == 100
    again.close()


@pytest.mark.parametrize("content", ["", "x y", "1 2 3", "1000.0 -5", "nan nan"])
async def test_a_note_that_makes_no_sense_counts_for_nothing(tmp_path: Path, time: Minutes, content: str):
    (tmp_path / "quota").write_text(content)
    quota = quota_in(tmp_path, time)
    async with quota.admitted("messages.get", 100):
        assert quota.spent() == 100
    quota.close()
