"""The cost of a call of the model: from the settings, or from the published prices of known models."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

MILLION = 1_000_000
# A safe estimate for our own English and JSON, where a token has about four letters.
OUR_BYTES_PER_TOKEN = 2
SAMPLE_TOKENS = 1_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in millionths of a dollar per million tokens, for input and output."""

    input_micros: float
    output_micros: float

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        """The cost in millionths of a dollar, rounded up. Cached input is counted in full."""
        return math.ceil((input_tokens * self.input_micros + output_tokens * self.output_micros) / MILLION)


def most_tokens(ours: str, others: str) -> int:
    """An upper bound for the tokens of these texts. In other people's text each byte may be a token: mail can be
    written so as to cost more than its length suggests."""
    return _bytes(ours) // OUR_BYTES_PER_TOKEN + 1 + _bytes(others)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def prices_of(settings: "ModelSettings") -> Prices:
    """The prices in the settings; where they are missing, the published ones. Raises ModelRefused if there are none."""
    given = (settings.input_cents_per_million, settings.output_cents_per_million)
    if given[0] is not None and given[1] is not None:
        return Prices(given[0] * MICROS_PER_CENT, given[1] * MICROS_PER_CENT)
    known = _published_prices(settings)
    if known is None:
        raise ModelRefused(
            f"the price of the model {settings.name!r} is not known, so no budget could be kept; set "
            "model.input_cents_per_million and model.output_cents_per_million (0 for a model of your own)"
        )
    return Prices(
        known.input_micros if given[0] is None else given[0] * MICROS_PER_CENT,
        known.output_micros if given[1] is None else given[1] * MICROS_PER_CENT,
    )


def _published_prices(settings: "ModelSettings") -> Prices | None:
    from genai_prices import Usage, calc_price  # takes 0.3 s to import, so only when needed

    def micros(**tokens: int) -> float:
        price = calc_price(Usage(**tokens), settings.name or "", provider_id=settings.provider).total_price
        return float(price) * MILLION * MILLION / SAMPLE_TOKENS

    try:
        return Prices(micros(input_tokens=SAMPLE_TOKENS), micros(output_tokens=SAMPLE_TOKENS))
    except LookupError:
        return None
