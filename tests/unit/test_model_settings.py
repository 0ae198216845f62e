"""The settings of the model: none by default; missing or wrong ones are named."""

import re
from pathlib import Path

import pytest

from postroom.core.errors import SettingsError
from postroom.settings.reading import Settings, load_settings, shown


def load(folder: Path, **model: str) -> Settings:
    environ = {f"POSTROOM_MODEL_{name.upper()}": value for name, value in model.items()}
    return load_settings({"data_dir": folder}, environ=environ)


def test_there_is_no_model_unless_one_is_named(tmp_path: Path) -> None:
    assert load(tmp_path).model.provider == "none"


def test_a_model_of_a_provider_needs_its_name_and_a_key(tmp_path: Path) -> None:
    found = load(tmp_path, provider="anthropic", name="claude-haiku-4-5", api_key="sk-x").model
    assert (found.mode, found.temperature, found.max_cents_per_day) == ("full", 0.2, 100)


def test_a_server_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    found = load(tmp_path, provider="openai", name="llama", base_url="http://127.0.0.1:11434/v1/").model
    assert found.base_url == "http://127.0.0.1:11434/v1"


def test_the_key_is_never_shown(tmp_path: Path) -> None:
    settings = load(tmp_path, provider="openai", name="gpt-4o-mini", api_key="sk-canary")
    assert "canary" not in f"{shown(settings)} {settings!r}"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"provider": "openai", "api_key": "sk-x"}, "model.name: None"),
        ({"provider": "openai", "name": "gpt-4o-mini"}, "model.api_key"),
        ({"provider": "openai", "name": "x", "api_key": "sk canary\n"}, "model.api_key: **********"),
        ({"provider": "opnai"}, "use one of none, openai, anthropic"),
        ({"base_url": "http://user:canary@host/v1"}, "model.base_url"),
        ({"base_url": "127.0.0.1:11434"}, "an address such as http://127.0.0.1:11434/v1"),
        ({"mode": "some"}, "use one of full, headers, redacted"),
        ({"max_cents_per_day": "-1"}, "use a number from 0"),
        ({"max_cents_per_message": "nan"}, "model.max_cents_per_message"),
        ({"input_cents_per_million": "cheap"}, "use a number from 0"),
        ({"temperature": "2"}, "use a number from 0 to 1"),
        ({"max_output_tokens": "1"}, "use a whole number from 100"),
        ({"nmae": "x"}, "did you mean POSTROOM_MODEL_NAME?"),
    ],
)
def test_what_is_wrong_is_reported_by_name(tmp_path: Path, given: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(problem)) as refused:
        load(tmp_path, **given)
    assert "canary" not in str(refused.value)
