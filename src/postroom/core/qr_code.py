"""QR codes (ISO/IEC 18004) of short texts: bytes, error correction L, versions 1 to 15.

The code is drawn in three layers: the fixed patterns that readers look for, the bits of the text and of its error
correction in a zigzag from the lower right, and a mask over those, chosen so that few areas look like a fixed pattern.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Modules = list[list[bool]]
"""The rows of a code; True is dark."""
CORRECTION = (7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22)
"""The bytes of error correction in a block, by version from 1."""
BLOCKS = (1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6)
MASKS: Sequence[Callable[[int, int], bool]] = (
    lambda y, x: (y + x) % 2 == 0,
    lambda y, _: y % 2 == 0,
    lambda _, x: x % 3 == 0,
    lambda y, x: (y + x) % 3 == 0,
    lambda y, x: (y // 2 + x // 3) % 2 == 0,
    lambda y, x: y * x % 2 + y * x % 3 == 0,
    lambda y, x: (y * x % 2 + y * x % 3) % 2 == 0,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2 == 0,
)
_LEVEL_L = 0b01
_BYTES = 0b0100
_FINDER_LIKE = re.compile("(?=10111010000|00001011101)")


def qr_code(text: str, mask: int | None = None) -> Modules | None:
    """Return the code of the text, None if it is too long; with the given mask, or else the one that reads best."""
    content = text.encode()
    for version in range(1, len(BLOCKS) + 1):
        fixed = _fixed(version)
        size = len(fixed)
        room = (size * size - sum(each is not None for row in fixed for each in row)) // 8
        capacity = room - CORRECTION[version - 1] * BLOCKS[version - 1]
        length_bits = 8 if version < 10 else 16
        if len(content) * 8 + 4 + length_bits <= capacity * 8:
            bits = _interleaved(_padded(content, length_bits, capacity), version)
            masks = range(len(MASKS)) if mask is None else [mask]
            return min((_drawn(fixed, bits, each) for each in masks), key=_penalty)
    return None


def _padded(content: bytes, length_bits: int, capacity: int) -> bytes:
    bits = f"{_BYTES:04b}{len(content):0{length_bits}b}" + "".join(f"{byte:08b}" for byte in content)
    bits += "0" * min(4, capacity * 8 - len(bits))
    bits += "0" * (-len(bits) % 8)
    whole = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
    return (whole + b"\xec\x11" * capacity)[:capacity]


def _interleaved(content: bytes, version: int) -> str:
    """Return the bits of all blocks, byte by byte in turn, and then of their error correction."""
    count, size = BLOCKS[version - 1], len(content) // BLOCKS[version - 1]
    shorter = count - len(content) % count
    starts = [each * size + max(0, each - shorter) for each in range(count + 1)]
    blocks = [content[first:last] for first, last in pairwise(starts)]
    corrections = [_correction(each, CORRECTION[version - 1]) for each in blocks]
    turns = [each[at : at + 1] for of in (blocks, corrections) for at in range(max(map(len, of))) for each in of]
    return "".join(f"{byte:08b}" for byte in b"".join(turns))


def _correction(block: bytes, count: int) -> bytes:
    """Return the remainder of the block divided by (x - 1)(x - 2)(x - 4)…, in the field of 256 elements."""
    divisor, root = [1], 1
    for _ in range(count):
        divisor = [a ^ _times(b, root) for a, b in zip([*divisor, 0], [0, *divisor], strict=True)]
        root = _times(root, 2)
    left = [*block, *[0] * count]
    for at in range(len(block)):
        factor = left[at]
        for place, each in enumerate(divisor):
            left[at + place] ^= _times(each, factor)
    return bytes(left[-count:])


def _times(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1 ^ (0x11D if a & 0x80 else 0), b >> 1
    return product


def _fixed(version: int) -> list[list[bool | None]]:
    """Return the patterns that hold no text; places for text are None, those for the format are light."""
    size = version * 4 + 17
    grid: list[list[bool | None]] = [[None] * size for _ in range(size)]
    for at in range(size):
        grid[6][at] = grid[at][6] = at % 2 == 0
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        for y in range(max(0, top - 1), min(size, top + 8)):
            for x in range(max(0, left - 1), min(size, left + 8)):
                grid[y][x] = max(abs(y - top - 3), abs(x - left - 3)) in (0, 1, 3)
    centers = _centers(version)
    for y, x in ((y, x) for y in centers for x in centers if (y, x) not in ((6, 6), (6, size - 7), (size - 7, 6))):
        for dy, dx in ((dy, dx) for dy in range(-2, 3) for dx in range(-2, 3)):
            grid[y + dy][x + dx] = max(abs(dy), abs(dx)) != 1
    for y, x in (place for places in _format_places(size) for place in places):
        grid[y][x] = False
    grid[size - 8][8] = True
    if version >= 7:
        bits = _with_checks(version, 0x1F25, 12)
        for at in range(18):
            grid[at // 3][size - 11 + at % 3] = grid[size - 11 + at % 3][at // 3] = bits >> at & 1 == 1
    return grid


def _centers(version: int) -> list[int]:
    """Return where the small squares stand, in both directions."""
    if version == 1:
        return []
    gaps, last = version // 7 + 1, version * 4 + 10
    step = -(-(last - 6) // (2 * gaps)) * 2
    return [6, *(last - step * each for each in reversed(range(gaps)))]


def _with_checks(value: int, divisor: int, count: int) -> int:
    left = value << count
    while left.bit_length() > count:
        left ^= divisor << left.bit_length() - count - 1
    return value << count | left


def _format_places(size: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the two places of each bit that says which mask is used, from the lowest."""
    around = [0, 1, 2, 3, 4, 5, 7, 8]
    first = [*((each, 8) for each in around), *((8, each) for each in reversed(around[:-1]))]
    second = [*((8, size - 1 - each) for each in range(8)), *((size - 7 + each, 8) for each in range(7))]
    return zip(first, second, strict=True)


def _drawn(fixed: list[list[bool | None]], bits: str, mask: int) -> Modules:
    size = len(fixed)
    drawn = [[bool(each) for each in row] for row in fixed]
    rest = iter(bits)
    columns = [each for each in range(size - 1, 0, -1) if each != 6]
    for at, right in enumerate(columns[::2]):
        rows = range(size) if at % 2 else range(size - 1, -1, -1)
        for y, x in ((y, x) for y in rows for x in (right, right - 1)):
            if fixed[y][x] is None:
                drawn[y][x] = (next(rest, "0") == "1") != MASKS[mask](y, x)
    form = _with_checks(_LEVEL_L << 3 | mask, 0x537, 10) ^ 0x5412
    for at, places in enumerate(_format_places(size)):
        for y, x in places:
            drawn[y][x] = form >> at & 1 == 1
    return drawn


def _penalty(drawn: Modules) -> int:
    """Return how hard the code is to read: long runs, blocks of one colour, look-alikes of the corners, imbalance."""
    rows = ["".join("01"[each] for each in row) for row in drawn]
    lines = [*rows, *("".join(column) for column in zip(*rows, strict=True))]
    runs = sum(len(run) - 2 for line in lines for run in re.findall("0{5,}|1{5,}", line))
    alike = sum(len(_FINDER_LIKE.findall(line)) for line in lines)
    squares = sum(
        above[at : at + 2] == below[at : at + 2] in ("00", "11")
        for above, below in pairwise(rows)
        for at in range(len(rows) - 1)
    )
    percent = 100 * "".join(rows).count("1") / len(rows) ** 2
    return runs + alike * 40 + squares * 3 + int(abs(percent - 50) / 5) * 10


def qr_path(modules: Modules) -> str:
    """Return the dark parts as the path of an SVG, in which each module is one unit wide."""
    rows = enumerate("".join("01"[each] for each in row) for row in modules)
    runs = ((run.start(), y, len(run[0])) for y, row in rows for run in re.finditer("1+", row))
    return "".join(f"M{x} {y}h{width}v1h-{width}z" for x, y, width in runs)
