"""Backoff: grows, is capped and jittered, and respects the server's own Retry-After."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.jobs.retry import DEFAULT, GMAIL, JITTER, RetryPolicy, next_delay

policies = st.sampled_from([DEFAULT, GMAIL])


@given(policies, st.integers(1, 10_000), st.integers())
def test_a_pause_is_two_to_the_attempts_times_the_base_within_the_cap_and_the_jitter(
    policy: RetryPolicy, attempts: int, seed: int
) -> None:
    middle = min(policy.cap, policy.base * 2 ** min(attempts, 40))
    pause = policy.delay(attempts, Random(seed))
    assert middle * (1 - JITTER) <= pause <= middle * (1 + JITTER)


def test_pauses_differ_so_that_failures_do_not_come_back_together() -> None:
    rng = Random(1)
    pauses = {DEFAULT.delay(3, rng) for _ in range(100)}
    assert len(pauses) > 90


def test_the_same_seed_gives_the_same_pause() -> None:
    assert DEFAULT.delay(3, Random(5)) == DEFAULT.delay(3, Random(5))


def test_the_policies_are_those_of_the_design() -> None:
    assert (DEFAULT.max_attempts, DEFAULT.base, DEFAULT.cap) == (5, timedelta(seconds=1), timedelta(seconds=300))
    assert (GMAIL.max_attempts, GMAIL.base, GMAIL.cap) == (8, timedelta(seconds=5), timedelta(seconds=900))


@given(st.timedeltas(min_value=timedelta(0)), st.integers(1, 20))
def test_the_servers_retry_after_wins_over_our_backoff(after: timedelta, attempts: int) -> None:
    assert next_delay(DEFAULT, attempts, after, Random(1)) == after


def test_a_negative_retry_after_means_at_once() -> None:
    assert next_delay(DEFAULT, 1, timedelta(seconds=-5), Random(1)) == timedelta(0)


def test_without_a_retry_after_it_is_our_backoff() -> None:
    assert next_delay(DEFAULT, 2, None, Random(1)) == DEFAULT.delay(2, Random(1))


@pytest.mark.parametrize("attempts", [0, -1])
def test_a_policy_without_attempts_is_refused(attempts: int) -> None:
    with pytest.raises(BadInput, match=r"max_attempts: .* not positive; use 1 or more"):
        RetryPolicy(max_attempts=attempts)


def test_one_attempt_is_enough() -> None:
    assert RetryPolicy(max_attempts=1).max_attempts == 1
