"""The app's icon as PNG, for phones that take no SVG: the drawing of `static/icon.svg` on a ground without corners.

Phones cut the corners themselves, each in its own way; the envelope stays within what all of them leave.
"""

from functools import cache
from math import hypot

from postroom.core.png import palette_png

GRID = 32
"""The side of the drawing in its own units, those of the SVG."""
MIDDLE = GRID / 2
GROUND, PAPER = (0x44, 0x57, 0xD6), (0xFF, 0xFF, 0xFF)
HALF_WIDTH, HALF_HEIGHT, CORNER = 10, 7, 2.5
"""Of the envelope."""
FLAP = (7.5, 11.5), (16, 18)
"""The left half of the line across the envelope, from its end to its middle."""
FLAP_HALF_WIDTH = 1.1
SHADES = 255


@cache
def app_icon(size: int) -> bytes:
    """Return the picture, `size` points wide and high."""
    palette = bytes(
        round(dark + (light - dark) * shade / SHADES)
        for shade in range(SHADES + 1)
        for dark, light in zip(GROUND, PAPER, strict=True)
    )
    return palette_png(size, size, palette, (_row(y, size) for y in range(size)))


def _row(y: int, size: int) -> bytes:
    """Return one row; its right half mirrors its left."""
    unit = GRID / size
    if abs((y + 0.5) * unit - MIDDLE) > HALF_HEIGHT + unit:
        return bytes(size)
    left = bytes(_shade((x + 0.5) * unit, (y + 0.5) * unit, unit) for x in range(size // 2))
    return left + left[::-1]


def _shade(x: float, y: float, unit: float) -> int:
    """Return how much of the point is paper: an edge that runs through it leaves a part."""
    if x < MIDDLE - HALF_WIDTH - unit:
        return 0
    paper = _covered(_beyond_envelope(x, y), unit)
    return round(SHADES * paper * (1 - _covered(_beyond_flap(x, y), unit))) if paper else 0


def _covered(beyond: float, unit: float) -> float:
    return min(1.0, max(0.0, 0.5 - beyond / unit))


def _beyond_envelope(x: float, y: float) -> float:
    """Return the distance to the envelope's edge; inside it is negative."""
    across, down = abs(x - MIDDLE) - HALF_WIDTH + CORNER, abs(y - MIDDLE) - HALF_HEIGHT + CORNER
    return hypot(max(across, 0), max(down, 0)) + min(max(across, down), 0) - CORNER


def _beyond_flap(x: float, y: float) -> float:
    """Return the distance to the edge of the line; inside it is negative."""
    (x0, y0), (x1, y1) = FLAP
    along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2)
    at = min(1.0, max(0.0, along))
    return hypot(x - x0 - at * (x1 - x0), y - y0 - at * (y1 - y0)) - FLAP_HALF_WIDTH
