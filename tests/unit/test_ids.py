"""UUIDv7: the right form, the current time, and never twice."""

import os
import threading
import time
from uuid import RFC_4122, UUID

from postroom.store.engine.ids import new_id


def test_an_id_is_a_uuid_of_version_seven() -> None:
    for _ in range(1000):
        made = new_id()
        assert (made.version, made.variant) == (7, RFC_4122)
        assert UUID(str(made)) == made
        assert hash(UUID(str(made))) == hash(made)


def test_an_id_begins_with_its_moment_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id()
    after = time.time_ns() // 1_000_000
    assert before <= made.int >> 80 <= after


def test_ids_of_different_milliseconds_sort_by_their_time() -> None:
    first = new_id()
    while (second := new_id()).int >> 80 == first.int >> 80:
        pass
    assert first < second
    assert str(first) < str(second)


def test_ids_are_never_the_same() -> None:
    assert len({new_id() for _ in range(100_000)}) == 100_000


def test_ids_of_many_threads_are_never_the_same() -> None:
    made: list[list[UUID]] = []

    def make() -> None:
        made.append([new_id() for _ in range(5000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id for ids in made for id in ids}) == 20_000


def test_all_seventy_four_bits_are_random() -> None:
    ones = zeros = 0
    for _ in range(1000):
        value = new_id().int
        ones |= value
        zeros |= ~value
    random_bits = (0xFFF << 64) | ((1 << 62) - 1)
    assert ones & random_bits == random_bits
    assert zeros & random_bits == random_bits


def test_a_forked_child_does_not_repeat_its_parents_ids() -> None:
    new_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"".join(new_id().bytes for _ in range(50)))
        os._exit(0)
    ours = {new_id().int & ((1 << 62) - 1) for _ in range(50)}
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        theirs = pipe.read()
    random_parts = {int.from_bytes(theirs[n : n + 16]) & ((1 << 62) - 1) for n in range(0, len(theirs), 16)}
    assert len(random_parts) == 50
    assert not ours & random_parts
