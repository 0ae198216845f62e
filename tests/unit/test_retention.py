"""How long mail is kept: by its tier, or by the longest time of its categories."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import SettingsError
from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.retention import MOST_DAYS, RetentionPolicy
from postroom.core.queue.envelope import IngestionTier
from postroom.settings.reading import load_settings

NOW = datetime(2026, 11, 16, tzinfo=UTC)
DAYS = st.integers(0, MOST_DAYS)
NAMES = st.sampled_from(sorted(CATEGORIES))
POLICIES = st.builds(RetentionPolicy, DAYS, DAYS, st.dictionaries(NAMES, DAYS))
TIERS = st.sampled_from(["full", "metadata"])


def test_by_default_everything_is_kept_for_good() -> None:
    assert RetentionPolicy().shortest is None
    assert not RetentionPolicy().is_past("full", ["finance"], datetime(1, 1, 1, tzinfo=UTC), NOW)


@pytest.mark.parametrize(
    ("tier", "categories", "days"),
    [
        ("full", [], 365),
        ("metadata", [], 30),
        ("full", ["travel"], 365),
        ("full", ["finance"], 3650),
        ("metadata", ["finance"], 3650),
        ("full", ["newsletters"], 7),
        ("full", ["finance", "newsletters"], 3650),
        ("full", ["newsletters", "travel"], 365),
        ("full", ["health", "newsletters"], None),
    ],
)
def test_a_category_replaces_the_time_of_the_tier_and_the_longest_counts(
    tier: IngestionTier, categories: list[str], days: int | None
) -> None:
    policy = RetentionPolicy(365, 30, {"finance": 3650, "health": 0, "newsletters": 7})
    assert policy.days_for(tier, categories) == days


def test_a_message_is_past_its_time_from_the_very_moment() -> None:
    policy = RetentionPolicy(full_days=1)
    assert policy.is_past("full", [], NOW - timedelta(days=1), NOW)
    assert not policy.is_past("full", [], NOW - timedelta(days=1) + timedelta(microseconds=1), NOW)


@given(POLICIES, TIERS, st.lists(NAMES, unique=True), st.integers(0, MOST_DAYS + 1))
def test_what_is_past_is_older_than_every_time_that_applies_to_it(
    policy: RetentionPolicy, tier: IngestionTier, categories: list[str], age: int
) -> None:
    stored_at = NOW - timedelta(days=age)
    if policy.is_past(tier, categories, stored_at, NOW):
        own = policy.full_days if tier == "full" else policy.metadata_days
        applying = [policy.categories.get(each, own) for each in categories] or [own]
        assert all(0 < days <= age for days in applying)
        assert policy.shortest is not None
        assert timedelta(days=age) >= policy.shortest


@given(POLICIES, TIERS, st.lists(NAMES, unique=True), NAMES, st.integers(0, MOST_DAYS + 1))
def test_a_further_category_with_its_own_time_never_makes_a_message_go_sooner(
    policy: RetentionPolicy, tier: IngestionTier, categories: list[str], more: str, age: int
) -> None:
    if categories and policy.is_past(tier, [*categories, more], NOW - timedelta(days=age), NOW):
        assert policy.is_past(tier, categories, NOW - timedelta(days=age), NOW)


@given(POLICIES, POLICIES)
def test_two_policies_have_the_same_form_if_and_only_if_they_are_the_same(
    one: RetentionPolicy, other: RetentionPolicy
) -> None:
    assert (one.as_json() == other.as_json()) == (one == other)


def test_the_settings_are_read_with_categories_as_a_table_or_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_RETENTION_CATEGORIES", '{"finance": 3650, "health": 0}')
    settings = load_settings({"data_dir": tmp_path, "retention.full_days": 365})
    assert settings.retention.policy == RetentionPolicy(365, 0, {"finance": 3650, "health": 0})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("full_days", "-1", "retention.full_days"),
        ("metadata_days", "36501", "retention.metadata_days"),
        ("full_days", "soon", "retention.full_days"),
        ("categories", '{"finances": 1}', "did you mean"),
        ("categories", '{"finance": -1}', "retention.categories"),
        ("categories", '{"finance": true}', "retention.categories"),
        ("categories", "finance", "retention.categories"),
    ],
)
def test_a_wrong_time_or_category_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(f"POSTROOM_RETENTION_{name.upper()}", value)
    with pytest.raises(SettingsError, match=told):
        load_settings({"data_dir": tmp_path})
