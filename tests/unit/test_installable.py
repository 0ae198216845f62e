"""What phones are told about the pages, and the picture that they are shown by."""

import struct
import zlib

from postroom.interfaces.dashboard.app_icon import app_icon
from postroom.interfaces.dashboard.assets import load_assets
from postroom.interfaces.dashboard.installable import GROUND, KEPT, worker


def points_of(png: bytes) -> tuple[bytes, list[bytes]]:
    """The palette of a picture, and its rows."""
    parts, at = dict[bytes, bytes](), 8
    while at < len(png):
        (length,), name = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        parts[name] = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + parts[name])
        at += 12 + length
    (width,) = struct.unpack(">I", parts[b"IHDR"][:4])
    points = zlib.decompress(parts[b"IDAT"])
    return parts[b"PLTE"], [points[start + 1 : start + 1 + width] for start in range(0, len(points), width + 1)]


def test_the_icon_is_an_envelope_on_a_whole_ground() -> None:
    palette, rows = points_of(app_icon(192))
    assert {len(rows), *map(len, rows)} == {192}

    def colour(x: int, y: int) -> str:
        """At a place in the units of the drawing."""
        shade = rows[y * 6][x * 6]
        return palette[shade * 3 : shade * 3 + 3].hex()

    ground, paper = "4457d6", "ffffff"
    assert [colour(x, y) for x, y in ((0, 0), (31, 31), (16, 4), (3, 16))] == [ground] * 4
    assert [colour(x, y) for x, y in ((8, 20), (16, 12), (24, 20))] == [paper] * 3
    assert [colour(x, y) for x, y in ((16, 18), (12, 15), (20, 15))] == [ground] * 3, "the flap"
    assert all(row == row[::-1] for row in rows)


def test_phones_paint_their_bars_in_the_ground_of_the_pages() -> None:
    style = load_assets()["postroom.css"].body.decode()
    assert f"--bg: light-dark({GROUND['light']}, {GROUND['dark']})" in " ".join(style.split())


def test_the_worker_differs_when_a_file_that_it_keeps_does() -> None:
    assets = dict(load_assets())
    assets["offline.html"] = assets["icons.svg"]
    assert worker(assets) == worker({**assets})
    changed = worker({**assets, KEPT[-1]: assets["copy.js"]})
    assert changed.split(b"\n")[0] != worker(assets).split(b"\n")[0]
