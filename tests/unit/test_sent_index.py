"""The index of sent mail: survives a kill, needs little memory for a million ids, and survives damage."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import StoreError
from postroom.core.mail.tiers import Known, assign_tier
from postroom.mailboxes.following.sent_index import SentIndex
from support.scale import scale


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "connectors" / "sent.sqlite3"


def test_what_was_added_is_there_and_nothing_else(path: Path):
    index = SentIndex(path)
    assert index.add(["<a@x>", "<b@x>", "<a@x>"]) == 2
    assert index.add(["<b@x>", "<c@x>"]) == 1
    assert index.add([]) == 0
    assert "<a@x>" in index
    assert "<A@x>" not in index
    assert "a@x" not in index
    assert 7 not in index
    assert len(index) == 3
    index.close()


def test_it_is_there_when_it_is_opened_again(path: Path):
    first = SentIndex(path)
    first.add(["<a@x>"])
    assert not first.is_filled
    first.mark_filled()
    first.close()
    second = SentIndex(path)
    assert "<a@x>" in second
    assert second.is_filled
    second.close()


def test_two_processes_may_share_it(path: Path):
    one, other = SentIndex(path), SentIndex(path)
    one.add(["<a@x>"])
    assert "<a@x>" in other
    assert other.add(["<a@x>", "<b@x>"]) == 1
    assert "<b@x>" in one
    one.close()
    other.close()


def test_every_addition_waits_for_the_disk(path: Path):
    index = SentIndex(path)
    modes = [index._file.run(f"PRAGMA {name}") for name in ("journal_mode", "synchronous")]
    assert modes == [[("wal",)], [(2,)]]
    index.close()


def test_ids_cannot_be_listed(path: Path):
    index = SentIndex(path)
    with pytest.raises(TypeError):
        list(index)
    index.close()


@given(st.sets(st.text(max_size=40), max_size=30), st.sets(st.text(max_size=40), max_size=30))
def test_it_is_the_set_of_what_was_added(tmp_path_factory: pytest.TempPathFactory, added: set[str], asked: set[str]):
    index = SentIndex(tmp_path_factory.mktemp("sent") / "sent.sqlite3")
    assert index.add(added) == len(index) == len({each.encode("utf-8", "replace") for each in added})
    assert all(each in index for each in added)
    assert {each for each in asked if each in index} >= asked & added
    index.close()


def test_the_tier_of_a_reply_is_found_through_it(path: Path):
    index = SentIndex(path)
    index.add(["<a@x>"])
    known = Known(frozenset({"me@x.example"}), sent_ids=index)
    assert assign_tier((("In-Reply-To", "<a@x>"),), known).rule == "reply_to_outbound"
    assert assign_tier((("In-Reply-To", "<b@x>"),), known).rule == "fallback_default"
    index.close()


ADDS_FOR_EVER = """
import sys
from pathlib import Path
from postroom.mailboxes.following.sent_index import SentIndex

index, number = SentIndex(Path(sys.argv[1])), int(sys.argv[2])
while True:
    index.add([f"<{number}@x>"])
    print(number, flush=True)
    number += 1
"""


def test_what_was_added_before_a_kill_is_there_after_it(path: Path):
    number = 0
    for _ in range(scale(3, 20)):
        command = [sys.executable, "-c", ADDS_FOR_EVER, str(path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(25):
                assert int(process.stdout.readline()) == number
                number += 1
            process.send_signal(signal.SIGKILL)
            number += len(process.stdout.read().split())
        index = SentIndex(path)
        assert all(f"<{each}@x>" in index for each in range(number))
        assert len(index) - number in (0, 1), "the last one may be in it without having been told"
        number = len(index)
        index.close()


FILLS = """
import resource, sys
from pathlib import Path
from postroom.mailboxes.following.sent_index import SentIndex

index, count = SentIndex(Path(sys.argv[1])), int(sys.argv[2])
index.add(["<warm@x>"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for start in range(0, count, 1000):
    index.add([f"<{number}@x>" for number in range(start, start + 1000)])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no getrusage")
def test_memory_does_not_grow_with_the_ids(path: Path):
    count = scale(100_000, 1_000_000)
    command = [sys.executable, "-c", FILLS, str(path), str(count)]
    grown_mib = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown_mib < 12
    index = SentIndex(path)
    assert len(index) == count + 1
    index.close()


@pytest.mark.parametrize("content", [b"this is no database, whatever its name says" * 100, b"\x00" * 8192])
def test_a_file_that_is_no_index_is_set_aside(path: Path, content: bytes):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    index = SentIndex(path)
    assert index.add(["<a@x>"]) == 1
    assert not index.is_filled
    index.close()
    assert path.with_name("sent.sqlite3.damaged").read_bytes() == content


def test_a_damaged_index_is_set_aside_and_begun_again(path: Path):
    index = SentIndex(path)
    index.add([f"<{number}@x>" for number in range(5000)])
    index.mark_filled()
    index._file.run("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    whole = bytearray(path.read_bytes())
    whole[4096:20_480] = b"\xff" * 16_384
    path.write_bytes(whole)
    again = SentIndex(path)
    assert len(again) == 0
    assert not again.is_filled
    again.close()


def test_a_disk_that_does_not_take_it_is_an_error_that_names_the_file(path: Path):
    index = SentIndex(path)
    index._file.run("PRAGMA query_only = 1")
    with pytest.raises(StoreError, match=r"sent\.sqlite3 cannot be read or written"):
        index.add(["<a@x>"])
    index.close()


def test_a_file_that_cannot_be_read_is_reported_as_ours(path: Path):
    index = SentIndex(path)
    index._file.run("DROP TABLE sent")
    with pytest.raises(StoreError, match=r"sent\.sqlite3 cannot be read or written .*; check that its disk works"):
        _ = "<a@x>" in index
    with pytest.raises(StoreError, match="cannot be read"):
        len(index)
    index.close()
