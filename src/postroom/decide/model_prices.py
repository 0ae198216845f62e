"""What a call of a model costs: by the settings, or by the published prices of known models."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT

if TYPE_CHECKING:
    from postroom.settings.sections import ModelSettings

MILLION = 1_000_000
# Of English and JSON that we have written ourselves: a token of those is four letters or so.
OUR_BYTES_PER_TOKEN = 2
SAMPLE_TOKENS = 1_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Millionths of a dollar for a million tokens, sent and answered."""

    input_micros: float
    output_micros: float

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        """In millionths of a dollar, rounded up. What the provider had cached is counted in full."""
        return math.ceil((input_tokens * self.input_micros + output_tokens * self.output_micros) / MILLION)


def most_tokens(ours: str, others: str) -> int:
    """The most tokens that these texts can have. In what others wrote, each may be a single byte: mail can be made of
    such letters, to cost more than its length lets one expect."""
    return _bytes(ours) // OUR_BYTES_PER_TOKEN + 1 + _bytes(others)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def prices_of(settings: "ModelSettings") -> Prices:
    """Those of the settings; what they leave open, from the list of known models. Raises ModelRefused."""
    given = (settings.input_cents_per_million, settings.output_cents_per_million)
    if given[0] is not None and given[1] is not None:
        return Prices(given[0] * MICROS_PER_CENT, given[1] * MICROS_PER_CENT)
    known = _published(settings)
    if known is None:
        raise ModelRefused(
            f"the price of the model {settings.name!r} is not known, so no budget could be kept; set "
            "model.input_cents_per_million and model.output_cents_per_million (0 for a model of your own)"
        )
    return Prices(
        known.input_micros if given[0] is None else given[0] * MICROS_PER_CENT,
        known.output_micros if given[1] is None else given[1] * MICROS_PER_CENT,
    )


def _published(settings: "ModelSettings") -> Prices | None:
    from genai_prices import Usage, calc_price  # 0.3 s, and only where a price is asked for

    def micros(**tokens: int) -> float:
        price = calc_price(Usage(**tokens), settings.name or "", provider_id=settings.provider).total_price
        return float(price) * MILLION * MILLION / SAMPLE_TOKENS

    try:
        return Prices(micros(input_tokens=SAMPLE_TOKENS), micros(output_tokens=SAMPLE_TOKENS))
    except LookupError:
        return None
