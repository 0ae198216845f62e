"""What the Gmail connector keeps over restarts: checkpoint, delivered ids, refusals, units spent."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import same_mailbox
from postroom.mailboxes.following import refused as refused_mail
from postroom.mailboxes.following import set_aside
from postroom.mailboxes.following.ingested_ids import IngestedIds
from postroom.mailboxes.following.refused import RefusedMail, refused_in
from postroom.mailboxes.following.running import held_folder
from postroom.mailboxes.following.set_aside import ROUNDS, SetAside, set_aside_in
from postroom.mailboxes.gmail.errors import ServerError
from postroom.mailboxes.gmail.following.changes import changes_in
from postroom.mailboxes.gmail.following.spending import RememberedQuota
from postroom.mailboxes.gmail.resources import HistoryRecord, LabelChange, MessageRef
from postroom.mailboxes.gmail.terms import Terms
from postroom.sources.checkpoint import Checkpoint, ListPosition, LookBackState
from postroom.sources.state_file import replace_file
from support.clocks import ManualClock


def test_a_checkpoint_is_what_was_written_last(tmp_path: Path, clock: ManualClock):
    checkpoint = Checkpoint(tmp_path / "here" / "checkpoint.json")
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.look_back()) == (None, None, None)
    checkpoint.write(7, clock())
    since = clock() - timedelta(days=7)
    checkpoint.begin_look_back(9, clock(), since)
    assert (checkpoint.read(), checkpoint.reached_at()) == (7, clock())
    assert Checkpoint(tmp_path / "here" / "checkpoint.json").look_back() == LookBackState(9, clock(), since)
    checkpoint.pass_in_list("sent", ListPosition("18c0", since))
    checkpoint.follow_meanwhile(11, clock() + timedelta(hours=1))
    expected = LookBackState(11, clock() + timedelta(hours=1), since, {"sent": ListPosition("18c0", since)})
    assert checkpoint.look_back() == expected
    checkpoint.write(9)
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.look_back()) == (9, None, None)
    checkpoint.follow_meanwhile(12, clock())
    checkpoint.pass_in_list("sent", ListPosition("18c0", since))
    assert checkpoint.look_back() is None


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"{",
            b"[]",
            b"7",
            b'{"history_id": true}',
            b'{"history_id": "x"}',
            b'{"history_id": [1]}',
            b"\xff",
            b"{}",
        ),
        *(b'{"look_back": 7}', b'{"look_back": {"history_id": 7}}', b'{"looking_back_from": 7}'),
        b'{"look_back": {"history_id": 7, "began_at": "2026-11-15T08:00:00Z", "since": "x", "passed": {}}}',
    ],
)
def test_a_checkpoint_that_is_invalid_is_none(tmp_path: Path, content: bytes):
    (tmp_path / "checkpoint.json").write_bytes(content)
    checkpoint = Checkpoint(tmp_path / "checkpoint.json")
    assert (checkpoint.read(), checkpoint.reached_at(), checkpoint.look_back()) == (None, None, None)


def test_what_was_delivered_is_known_in_the_next_life(tmp_path: Path):
    first = IngestedIds(tmp_path / "ids")
    assert first.add(["a", "b"]) == 2
    assert first.add(["b", "c"]) == 1
    again = IngestedIds(tmp_path / "ids")
    assert all(id in again for id in "abc")
    assert len(again) == 3


def test_a_line_that_a_crash_cut_off_is_not_taken_for_an_id(tmp_path: Path):
    (tmp_path / "ids").write_text("18c0ffee\n18c0")
    found = IngestedIds(tmp_path / "ids")
    assert "18c0ffee" in found
    assert "18c0" not in found


def test_only_the_newest_are_remembered_and_the_file_stays_small(tmp_path: Path):
    found = IngestedIds(tmp_path / "ids", most=10)
    for number in range(1000):
        found.add([str(number)])
    assert len(found) == 10
    assert "999" in found
    assert "989" not in found
    assert len((tmp_path / "ids").read_text().splitlines()) <= 20
    assert "999" in IngestedIds(tmp_path / "ids", most=10)


def test_a_refusal_is_remembered_without_words_of_the_message(tmp_path: Path, clock: ManualClock):
    refused = RefusedMail(tmp_path, clock)
    refused.remember("18c0", BadInput("payload.raw\n", "holds 'my secret'", "do not"))
    refused.remember("18c1", ValueError("my secret"))
    told = (tmp_path / "refused.jsonl").read_text()
    assert "secret" not in told
    assert '"reason":"BadInput: payload.raw?"' in told
    assert RefusedMail(tmp_path, clock).count == 2


def test_a_refusal_stands_once_and_is_taken_back_when_the_message_succeeds(tmp_path: Path, clock: ManualClock):
    refused = RefusedMail(tmp_path, clock)
    for error in (ValueError(), KeyError()):
        refused.remember("18c0", error)
    refused.remember("18c1", ValueError())
    assert [(each.id, each.reason) for each in refused_in(tmp_path)] == [("18c0", "KeyError"), ("18c1", "ValueError")]
    assert refused.forget(["18c0", "18c9"])
    assert not refused.forget(["18c0", "18c9"])
    assert [each.id for each in refused_in(tmp_path)] == ["18c1"]
    assert (refused.count, RefusedMail(tmp_path, clock).count) == (1, 1)


def test_a_refusal_is_never_missing_from_the_list_and_only_its_owner_reads_it(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    refused = RefusedMail(tmp_path, clock)
    refused.remember("18c0", ValueError())
    assert (tmp_path / "refused.jsonl").stat().st_mode & 0o777 == 0o600
    written: list[bytes] = []

    def replaced(path: Path, content: bytes) -> None:
        written.append(content)
        replace_file(path, content)

    monkeypatch.setattr(refused_mail, "replace_file", replaced)
    refused.remember("18c0", KeyError())
    assert len(written) == 1
    assert b"18c0" in written[0]
    assert b"KeyError" in written[0]
    assert (tmp_path / "refused.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_refusal_that_a_crash_left_in_both_files_is_listed_once(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(refused_mail, "LARGEST_FILE", 10)
    refused = RefusedMail(tmp_path, clock)
    refused.remember("18c0", ValueError())
    refused.remember("18c1", ValueError())
    old = (tmp_path / "refused.old.jsonl").read_bytes()
    monkeypatch.setattr(refused_mail, "LARGEST_FILE", 10_000)
    refused.remember("18c0", KeyError())
    (tmp_path / "refused.old.jsonl").write_bytes(old)
    assert [(each.id, each.reason) for each in refused_in(tmp_path)] == [("18c1", "ValueError"), ("18c0", "KeyError")]


def test_a_list_of_refusals_that_has_grown_too_long_goes_on_in_another_file(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(refused_mail, "LARGEST_FILE", 100)
    refused = RefusedMail(tmp_path, clock)
    for number in range(3):
        refused.remember(f"18c{number}", ValueError())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["refused.jsonl", "refused.old.jsonl"]
    assert refused.forget(["18c0"])
    assert [each.id for each in refused_in(tmp_path)] == ["18c1", "18c2"]
    assert refused.count == 2


def test_a_message_is_set_aside_in_the_fourth_round_and_known_in_the_next_life(tmp_path: Path, clock: ManualClock):
    for number in range(ROUNDS):
        assert "18c0" not in SetAside(tmp_path, clock), number
        SetAside(tmp_path, clock).fail({"18c0": ServerError("messages.get", 503)})
    (found,) = set_aside_in(tmp_path)
    assert (found.id, found.reason, found.since) == ("18c0", "ServerError: 503", clock())
    assert "18c0" in SetAside(tmp_path, clock)


def test_pauses_double_up_to_a_day(clock: ManualClock):
    aside, pauses = SetAside(None, clock), list[float]()
    for _ in range(ROUNDS):
        aside.fail({"18c0": ValueError()})
    for _ in range(14):
        waited = 0
        while not aside.due(5):
            clock.forward(60)
            waited += 1
        pauses.append(waited)
        aside.put_off("18c0", ValueError())
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440, 1440]


def test_one_that_came_to_its_end_meanwhile_is_not_put_off(tmp_path: Path, clock: ManualClock):
    aside = SetAside(tmp_path, clock)
    for _ in range(ROUNDS):
        aside.fail({"18c0": ValueError()})
    aside.forget(["18c0"])
    aside.put_off("18c0", ValueError())
    assert (aside.count, set_aside_in(tmp_path)) == (0, [])


def test_a_round_that_goes_well_begins_the_count_again(clock: ManualClock):
    aside = SetAside(None, clock)
    for _ in range(3):
        for _ in range(ROUNDS - 1):
            aside.fail({"18c0": ValueError()})
        aside.forget(["18c0"])
    assert aside.count == 0


def test_there_is_an_end_to_what_is_set_aside(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(set_aside, "MOST", 2)
    aside = SetAside(tmp_path, clock)
    for _ in range(2 * ROUNDS):
        aside.fail({str(number): ValueError() for number in range(3)})
    assert len(set_aside_in(tmp_path)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"set_aside": {}, "failing": []}', b'{"set_aside": [7, {"id": "x"}]}']
)
def test_a_list_that_is_invalid_is_empty(tmp_path: Path, clock: ManualClock, content: bytes):
    (tmp_path / "set_aside.json").write_bytes(content)
    assert SetAside(tmp_path, clock).count == 0


def test_of_each_label_the_last_thing_that_happened_is_reported():
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


async def test_units_come_back_to_the_next_process_as_they_would_have_to_the_killed_one(tmp_path: Path, time: Minutes):
    first = quota_in(tmp_path, time)
    for units in (400, 300):
        async with first.admitted("messages.get", units):
            pass
        time.seconds += 40
    first.close()
    again = quota_in(tmp_path, time)
    assert again.spent() == 300, "the first are long past, and what was on its way counts ten seconds more"
    time.seconds += 31
    assert again.spent() == 0
    again.close()


@pytest.mark.parametrize("content", ["", "x y", "1 2 3", "1000.0 -5", "nan nan"])
async def test_a_note_that_is_invalid_counts_for_nothing(tmp_path: Path, time: Minutes, content: str):
    (tmp_path / "quota").write_text(content)
    quota = quota_in(tmp_path, time)
    async with quota.admitted("messages.get", 100):
        assert quota.spent() == 100
    quota.close()


@pytest.mark.parametrize(
    "other", ["gmail-ada.love@gmail.com", "gmail-adalove@googlemail.com", "gmail-adalove@gmail.com"]
)
def test_a_mailbox_has_one_connector_however_its_address_is_spelled(tmp_path: Path, other: str) -> None:
    with held_folder(tmp_path / "gmail-ada.love@gmail.com") as folder, held_folder(tmp_path / "gmail-bo@gmail.com"):
        assert folder.name == "gmail-ada.love@gmail.com"
        with pytest.raises(BadInput, match="is already running"), held_folder(tmp_path / other):
            pass
    with held_folder(tmp_path / other):
        pass
