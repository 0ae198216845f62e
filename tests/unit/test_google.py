"""Google's limits for the user, from the settings."""

from pathlib import Path

import pytest

from postroom.core.errors import SettingsError
from postroom.mailboxes.gmail.from_settings import quota_terms
from postroom.mailboxes.gmail.terms import NEW_PROJECT
from postroom.settings.reading import load_settings


def _settings(tmp_path: Path, **environ: str):
    return load_settings(
        {"data_dir": tmp_path}, environ={f"POSTROOM_GMAIL_{name}": value for name, value in environ.items()}
    )


def test_without_anything_said_the_terms_are_those_of_a_new_project(tmp_path: Path):
    assert quota_terms(_settings(tmp_path)) == NEW_PROJECT


def test_units_reserve_and_single_prices_are_settings(tmp_path: Path):
    environ = {"UNITS_PER_MINUTE": "15000", "RESERVE_UNITS": "3000", "PRICES": '{"messages.get": 5}'}
    terms = quota_terms(_settings(tmp_path, **environ))
    assert (terms.per_minute, terms.reserve) == (15_000, 3_000)
    assert terms.prices["messages.get"] == 5
    assert terms.prices["messages.list"] == NEW_PROJECT.prices["messages.list"]


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"PRICES": '{"message.get": 5}'}, "did you mean messages.get"),
        ({"PRICES": '{"messages.get": -5}'}, "0 or more"),
        ({"RESERVE_UNITS": "6000"}, "reserve_units: .*not enough"),
    ],
)
def test_terms_that_are_invalid_are_refused_with_the_setting(tmp_path: Path, environ: dict[str, str], told: str):
    with pytest.raises(SettingsError, match=rf"gmail\..*{told}"):
        quota_terms(_settings(tmp_path, **environ))
