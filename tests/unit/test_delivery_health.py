"""The judgement of outgoing mail: each trouble at its threshold, and words for all of them."""

from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from postroom.core.outbound.delivery_health import FEWEST_COUNTED, DeliveryFacts, Trouble, TroubleKind, delivery_health
from postroom.operations.installation import checks
from postroom.words.outbound import CONDITIONS, trouble_in_words

QUIET = DeliveryFacts(0, timedelta(0), 100)
COUNTS = st.integers(0, 10_000)
FACTS = st.builds(
    DeliveryFacts,
    queued=COUNTS,
    oldest_wait=st.timedeltas(timedelta(0), timedelta(days=5)),
    max_queue=st.integers(1, 1000),
    sent=COUNTS,
    put_off=COUNTS,
    failed=COUNTS,
    reasons=st.dictionaries(st.sampled_from(["", "hard", "policy", "full"]), COUNTS),
    held_senders=st.integers(0, 3),
    held_mail=COUNTS,
    paused=st.lists(st.just("shut.example"), max_size=3),
)


def kinds(**facts: object) -> list[tuple[str, bool]]:
    return [(each.kind, each.is_failing) for each in delivery_health(QUIET._replace(**facts)).troubles]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, []),
        ({"failed": 1}, []),
        ({"failed": 4}, []),
        ({"failed": 5}, [("stuck", True)]),
        ({"put_off": 5}, [("stuck", True)]),
        ({"sent": 1, "failed": 18}, []),
        ({"sent": 19, "failed": 1}, []),
        ({"sent": 18, "failed": 2}, [("failed", False)]),
        ({"sent": 75, "failed": 25}, [("failed", False)]),
        ({"sent": 74, "failed": 26}, [("failed", True)]),
        ({"sent": 10, "put_off": 10}, []),
        ({"sent": 9, "put_off": 11}, [("put_off", False)]),
        ({"sent": 1, "put_off": 9}, []),
        ({"oldest_wait": timedelta(minutes=30)}, []),
        ({"oldest_wait": timedelta(minutes=31), "queued": 80}, [("late", False)]),
        ({"queued": 81}, [("long", False)]),
        ({"oldest_wait": timedelta(minutes=31), "queued": 81}, [("late", True), ("long", False)]),
        ({"held_senders": 1}, [("held", False)]),
        ({"paused": ["a.example"]}, [("paused", False)]),
    ],
)
def test_each_trouble_begins_at_its_threshold(facts: dict[str, object], found: list[tuple[str, bool]]) -> None:
    assert kinds(**facts) == found


@given(facts=FACTS)
def test_the_condition_is_that_of_the_worst_trouble_and_each_has_words(
    facts: DeliveryFacts,
) -> None:
    health = delivery_health(facts)
    assert (health.condition == "healthy") == (not health.troubles)
    assert (health.condition == "failing") == any(each.is_failing for each in health.troubles)
    marks = [each.is_failing for each in health.troubles]
    assert marks == sorted(marks, reverse=True)
    assert len({each.kind for each in health.troubles}) == len(health.troubles)
    for each in health.troubles:
        assert all(said.endswith(".") for said in trouble_in_words(each))
    assert checks.outgoing(health).verdict == {"healthy": "ok", "degraded": "warn", "failing": "fail"}[health.condition]


@given(facts=FACTS, more=st.integers(1, 1000))
def test_where_enough_is_counted_more_delivered_mail_never_makes_it_worse(facts: DeliveryFacts, more: int) -> None:
    assume(facts.sent + facts.failed >= FEWEST_COUNTED)
    order = list(CONDITIONS)
    after = delivery_health(facts._replace(sent=facts.sent + more))
    assert order.index(after.condition) <= order.index(delivery_health(facts).condition)


def test_the_words_name_numbers_the_main_reason_and_the_next_step() -> None:
    assert trouble_in_words(Trouble("stuck", True, 12, 12, "reputation")) == (
        "Nothing was delivered in this hour and the one before: all 12 attempts failed or were put off, "
        "mostly: distrusts our address.",
        "Read what the servers answered. Check the network, the DNS, and the sign-in at a smart host.",
    )
    paused = Trouble("paused", False, 1, about="shut.example")
    assert trouble_in_words(paused)[0] == "shut.example is paused."
    assert trouble_in_words(replace(paused, count=2))[0] == "shut.example and 1 other destination are paused."
    assert set(get_args(TroubleKind)) == {"stuck", "failed", "late", "long", "put_off", "held", "paused"}
