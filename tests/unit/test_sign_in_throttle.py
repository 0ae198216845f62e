"""Waits after failed sign-ins: a few tries are free, then each failure doubles the wait."""

from postroom.core.sign_in.throttle import MOST_KEPT, SignInLimits, SignInThrottle

LIMITS = SignInLimits(of_name=3, of_address=6, first_wait_s=60, longest_wait_s=3600, forget_s=86_400)
HERE, THERE = "192.0.2.1", "198.51.100.1"


def failing(throttle: SignInThrottle, name: str, address: str, times: int, now: float = 0.0) -> None:
    for _ in range(times):
        throttle.tries(name, address, now)


def test_a_few_failures_are_free_and_then_the_wait_doubles_up_to_an_hour() -> None:
    throttle = SignInThrottle(LIMITS)
    failing(throttle, "mara", HERE, 2)
    assert (throttle.wait_s("mara", HERE, 0), throttle.tries_left("mara", HERE, 0)) == (0, 1)
    now, waits = 0.0, list[float]()
    for _ in range(9):
        throttle.tries("mara", f"{now}", now)  # from ever new addresses
        waits.append(throttle.wait_s("mara", THERE, now))
        now += waits[-1]
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert throttle.wait_s("mara", THERE, now) == 0, "after the wait one more may be tried"
    assert throttle.tries_left("mara", THERE, now) == 0


def test_an_address_that_tries_many_names_waits_for_all_of_them() -> None:
    throttle = SignInThrottle(LIMITS)
    for number in range(6):
        throttle.tries(f"name-{number}", HERE, 0)
    assert throttle.wait_s("somebody else", HERE, 0) == 60
    assert throttle.wait_s("somebody else", THERE, 0) == 0


def test_strangers_cannot_lock_out_who_has_signed_in_from_here_before() -> None:
    throttle = SignInThrottle(LIMITS)
    throttle.tries("mara", HERE, 0)
    throttle.succeeded("mara", HERE)
    failing(throttle, "mara", THERE, 5)
    assert throttle.wait_s("mara", THERE, 0) > 0
    assert throttle.wait_s("mara", HERE, 0) == 0
    assert throttle.tries_left("mara", HERE, 0) == 6


def test_a_success_forgets_the_failures_of_the_name_but_not_those_of_the_address() -> None:
    throttle = SignInThrottle(LIMITS)
    failing(throttle, "other", HERE, 4)
    failing(throttle, "mara", HERE, 2)
    throttle.succeeded("mara", HERE)
    assert throttle.tries_left("mara", HERE, 0) == 1
    assert throttle.tries_left("mara", THERE, 0) == 3


def test_many_at_once_get_no_more_tries_than_one_after_the_other() -> None:
    """A try counts before it is made."""
    throttle = SignInThrottle(LIMITS)
    begun = 0
    while throttle.wait_s("mara", HERE, 0) == 0:
        throttle.tries("mara", HERE, 0)
        begun += 1
    assert begun == 3


def test_after_a_day_all_is_forgotten_and_memory_is_bounded() -> None:
    throttle = SignInThrottle(LIMITS)
    failing(throttle, "mara", HERE, 5)
    assert throttle.wait_s("mara", HERE, 86_400) == 0
    assert throttle.tries_left("mara", HERE, 86_400) == 3
    for number in range(MOST_KEPT + 10):
        throttle.tries(f"{number}", f"{number}", 0)
    assert len(throttle._names) == len(throttle._addresses) == MOST_KEPT


def test_guessing_from_many_addresses_closes_the_name_but_not_for_its_own_address() -> None:
    throttle = SignInThrottle(SignInLimits.of_window(of_name=5, of_address=3, window_s=60))
    throttle.recognise("ada", "home")
    for number in range(5):
        assert throttle.wait_s("ada", f"a{number}", 0) == 0
        throttle.tries("ada", f"a{number}", 0)
    assert throttle.wait_s("ada", "elsewhere", 59) == 1
    assert throttle.wait_s("ada", "home", 0) == 0
    assert throttle.wait_s("ada", "elsewhere", 60) == 0


def test_a_name_that_is_only_recognised_keeps_its_failures() -> None:
    """A client that connects for every mail does not give a guesser new tries."""
    throttle = SignInThrottle(SignInLimits.of_window(of_name=3, of_address=9, window_s=60))
    failing(throttle, "ada", THERE, 3)
    throttle.recognise("ada", HERE)
    assert throttle.wait_s("ada", THERE, 0) == 60
    assert throttle.wait_s("ada", HERE, 0) == 0


def test_guessing_many_names_from_one_address_closes_the_address() -> None:
    throttle = SignInThrottle(SignInLimits.of_window(of_name=5, of_address=3, window_s=60))
    for number in range(3):
        throttle.tries(f"user{number}", "a", 0)
    assert throttle.wait_s("another", "a", 0) == 60
    assert throttle.wait_s("another", "b", 0) == 0
