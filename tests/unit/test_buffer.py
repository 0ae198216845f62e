"""The worker's buffer: the most urgent first, sized by time, refilled when half is used."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.core.jobs.job import Job
from postroom.jobs.buffer import SMALLEST_SAMPLE_S, Buffer
from postroom.store.engine.ids import new_id

TOKEN = new_id()


def _job(seq: int, priority: int = 0) -> Job:
    return Job(seq, new_id(), "plain", {}, priority, 1, 5, False, None, TOKEN)


def _buffer(most: int = 10_000, horizon_s: float = 0.05) -> Buffer:
    return Buffer(most, horizon_s)


@given(st.lists(st.integers(-3, 3)))
def test_jobs_come_out_by_priority_and_then_by_seq_in_whatever_order_they_came(priorities: list[int]) -> None:
    buffer = _buffer()
    jobs = [_job(seq, priority) for seq, priority in enumerate(priorities)]
    buffer.add(reversed(jobs), 0)
    popped = [buffer.pop(0) for _ in range(len(buffer))]
    assert popped == sorted(jobs, key=lambda job: (-job.priority, job.seq))


def test_the_highest_priority_is_that_of_the_next() -> None:
    buffer = _buffer()
    assert buffer.highest_priority is None
    buffer.add([_job(1, -5), _job(2, 3)], 0)
    assert buffer.highest_priority == 3
    buffer.pop(0)
    assert buffer.highest_priority == -5


def test_a_new_buffer_wants_one_job_for_each_free_place() -> None:
    assert _buffer().wanted(7, 0) == 7
    assert _buffer().wanted(0, 0) == 0


def test_nothing_is_wanted_until_half_is_used() -> None:
    buffer = _buffer()
    buffer.add((_job(seq) for seq in range(4)), 0)
    wanted: list[int] = []
    while len(buffer):
        wanted.append(buffer.wanted(4, 0))
        buffer.pop(0)
    assert wanted == [0, 0, 2, 3]


def test_a_fast_worker_claims_ahead_about_its_horizon() -> None:
    buffer = _buffer()
    _observe(buffer, 20_000, seconds=2)
    assert 950 <= buffer.wanted(0, 2) <= 1000
    assert 954 <= buffer.wanted(4, 2) <= 1004


def test_a_buffer_never_wants_more_ahead_than_its_most() -> None:
    buffer = _buffer(most=100)
    _observe(buffer, 1_000_000, seconds=2)
    assert buffer.wanted(4, 2) == 104


def test_a_worker_that_becomes_slow_hardly_claims_ahead() -> None:
    buffer = _buffer()
    _observe(buffer, 20_000, seconds=2)
    _observe(buffer, 10, seconds=2, start=2)
    assert buffer.wanted(4, 4) == 4


def test_the_longer_nothing_ends_the_less_is_claimed_ahead() -> None:
    buffer = _buffer()
    _observe(buffer, 20_000, seconds=2)
    ahead = [buffer.wanted(0, 2 + silence) for silence in (0, 0.1, 0.2, 1, 10, 1000)]
    assert ahead == sorted(ahead, reverse=True)
    assert ahead[0] == ahead[1] > ahead[2] > ahead[3] > 0
    assert ahead[-1] == 0


def test_moments_too_short_to_measure_are_added_up() -> None:
    buffer = _buffer()
    tiny = SMALLEST_SAMPLE_S / 4
    for n in range(100):
        buffer.observe(25, n * tiny)
    assert abs(buffer.wanted(0, 99 * tiny) - 25 / tiny * 0.05) <= 5


def test_it_is_known_when_the_buffer_was_last_touched() -> None:
    buffer = _buffer()
    buffer.add([_job(1), _job(2)], 5)
    assert buffer.touched_at == 5
    buffer.pop(7)
    assert buffer.touched_at == 7


def test_draining_gives_every_claim_and_leaves_nothing() -> None:
    buffer = _buffer()
    jobs = [_job(seq) for seq in range(3)]
    buffer.add(jobs, 0)
    assert set(buffer.drain()) == {job.claim for job in jobs}
    assert len(buffer) == 0
    assert buffer.drain() == []


def _observe(buffer: Buffer, rate: int, seconds: float, start: float = 0) -> None:
    """Tells of that many jobs a second, twenty times a second."""
    for n in range(int(seconds * 20) + 1):
        buffer.observe(rate // 20, start + n / 20)


def test_what_waits_keeps_waiting_when_more_is_added() -> None:
    """Only a job that is taken out shows that the buffer moves."""
    buffer = Buffer(10, 1.0)
    buffer.add([_job(1)], now=5.0)
    buffer.add([_job(2)], now=50.0)
    assert buffer.touched_at == 5.0
    buffer.pop(60.0)
    assert buffer.touched_at == 60.0
