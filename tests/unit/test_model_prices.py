"""The cost of a call: by the settings, by published prices of known models, and never guessed."""

from typing import Any

import pytest

from postroom.core.errors import ModelRefused
from postroom.settings.sections import ModelSettings
from postroom.triage.decide.model_prices import Prices, most_tokens, prices_of
from postroom.triage.decide.prompt import SYSTEM


def settings(**changes: Any) -> ModelSettings:
    usual = {"provider": "openai", "name": "gpt-4o-mini", "api_key": "sk-x"}
    return ModelSettings.model_validate({**usual, **changes})


def test_the_price_of_a_known_model_is_known() -> None:
    assert prices_of(settings()) == Prices(150_000, 600_000)  # 15 and 60 cents a million
    assert prices_of(settings(provider="anthropic", name="claude-haiku-4-5")) == Prices(1_000_000, 5_000_000)


def test_a_price_in_the_settings_counts_before_the_published_one() -> None:
    assert prices_of(settings(input_cents_per_million=1)) == Prices(10_000, 600_000)
    assert prices_of(settings(output_cents_per_million=2)) == Prices(150_000, 20_000)


def test_a_model_of_ones_own_costs_what_the_settings_say() -> None:
    own = settings(name="my-own", input_cents_per_million=0, output_cents_per_million=0)
    assert prices_of(own) == Prices(0, 0)
    assert prices_of(own).cost(10**6, 10**6) == 0


@pytest.mark.parametrize("changes", [{}, {"input_cents_per_million": 1}, {"output_cents_per_million": 1}])
def test_an_unknown_price_is_asked_for_and_not_guessed(changes: dict[str, float]) -> None:
    with pytest.raises(ModelRefused, match=r"'my-own' is not known.*model\.output_cents_per_million"):
        prices_of(settings(name="my-own", **changes))


def test_costs_are_rounded_up() -> None:
    assert Prices(150_000, 600_000).cost(1, 0) == 1
    assert Prices(150_000, 600_000).cost(1_000_000, 1_000_000) == 750_000


@pytest.mark.parametrize("text", ["", "Hello there", "\u4f60\u597d", "\U0001f600", "\ud800"])
def test_for_each_byte_that_others_wrote_a_token_is_reserved(text: str) -> None:
    """Tokens of less than a byte there are not, and a text can be made of bytes that are tokens each."""
    assert most_tokens("", text) >= len(text.encode("utf-8", "replace"))


def test_our_own_english_has_fewer_tokens_than_are_reserved_for_it() -> None:
    words = len(SYSTEM.split())
    assert 2 * words < most_tokens(SYSTEM, "") < len(SYSTEM)
