"""How evenly outgoing mail is served: Gini, Jain and the largest share.

    Gini   0 if all were served equally, near 1 if one got everything
    Jain   1 if all were served equally, 1/n if one of n got everything

Both are taken of the service divided by the weight, so that a triple weight counts as equal when served three times as
much. The largest share is one tenant's part of all service, regardless of the weights.

They describe the service alone. A tenant with little to send was served little, and lowers the figures although no mail
had to wait: the waiting times show that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, NamedTuple

Discipline = Literal["fair", "fifo"]
"""How mail takes its turn: in the fair queue, or first in, first out."""
ServedLevel = Literal["tenant", "domain", "sender"]


class Service(NamedTuple):
    """The service of one tenant, domain or sender: its recipients, and its weight."""

    served: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Evenness:
    """How evenly several were served."""

    members: int
    gini: float
    jain: float
    largest_share: float


def evenness(services: Iterable[Service]) -> Evenness:
    """Judge how evenly service was spread over those who had any."""
    had = [each for each in services if each.served > 0]
    parts = [each.served / each.weight for each in had]
    return Evenness(len(had), gini(parts), jain(parts), largest_share([each.served for each in had]))


def gini(parts: Sequence[float]) -> float:
    """The Gini coefficient; 0 if there is nothing to share."""
    scaled = sorted(_scale(parts))
    if not scaled:
        return 0.0
    count = len(scaled)
    weighed = fsum((2 * place - count - 1) * part for place, part in enumerate(scaled, 1))
    return _clamp(weighed / (count * fsum(scaled)))


def jain(parts: Sequence[float]) -> float:
    """Jain's index; 1 if there is nothing to share, since all got the same."""
    scaled = _scale(parts)
    if not scaled:
        return 1.0
    return _clamp(fsum(scaled) ** 2 / (len(scaled) * fsum(part * part for part in scaled)))


def largest_share(parts: Sequence[float]) -> float:
    """The part of all that the largest one has; 0 if there is nothing."""
    scaled = _scale(parts)
    return _clamp(1 / fsum(scaled)) if scaled else 0.0


def _scale(parts: Sequence[float]) -> list[float]:
    """The parts with 1 as the largest, so that no square overflows; empty if all are 0."""
    largest = max(parts, default=0.0)
    return [part / largest for part in parts] if largest > 0 else []


def _clamp(value: float) -> float:
    return max(0.0, min(1.0, value))
