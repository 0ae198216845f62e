"""Pictures of the pages for the documentation: which there are, and how they are made small.

A browser's PNG has three bytes for each point. A page has few colours, so 256 of them in a palette, with one byte for
each point, look the same and take a third.
"""

import base64
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Page

from postroom.core.png import palette_png
from postroom.interfaces.dashboard.navigation import GROUPS

FOLDER = Path(__file__).parents[2] / "docs" / "screenshots"
LARGEST = 150_000
"""The most bytes that a picture may have."""
DESK, PHONE = (1280, 900), (390, 844)

_REDUCE = """async (picture) => {
  const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  canvas.drawImage(bitmap, 0, 0);
  const { data } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  // The commonest colours, but none that can hardly be told from one that is in the palette already.
  const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const apart = (one, other) => one.reduce((sum, value, index) => sum + (value - other[index]) ** 2, 0);
  const palette = [];
  for (const nearest of [48, 12, 0])
    for (const [colour] of [...counts].sort((one, other) => other[1] - one[1])) {
      if (palette.length === 256) break;
      const found = parts(colour);
      if (palette.every((each) => apart(each, found) > nearest)) palette.push(found);
    }
  const places = new Map();
  for (const colour of counts.keys()) {
    const found = parts(colour);
    let best = 0;
    for (let index = 1; index < palette.length; index++)
      if (apart(palette[index], found) < apart(palette[best], found)) best = index;
    places.set(colour, best);
  }
  const points = new Uint8Array(data.length / 4);
  for (let at = 0; at < points.length; at++)
    points[at] = places.get((data[at * 4] << 16) | (data[at * 4 + 1] << 8) | data[at * 4 + 2]);
  let text = "";
  for (let at = 0; at < points.length; at += 32768) text += String.fromCharCode(...points.subarray(at, at + 32768));
  return { width: bitmap.width, height: bitmap.height, palette: palette.flat(), points: btoa(text) };
}"""


class Shot(NamedTuple):
    """A picture: its name, the page, the size of the window, and whether it is dark."""

    name: str
    address: str
    size: tuple[int, int] = DESK
    is_dark: bool = False


def name_of(address: str) -> str:
    return address.strip("/").replace("/", "-") or "overview"


SHOTS = (
    *(Shot(name_of(place.address), place.address) for group in GROUPS for place in group.places),
    *(Shot(f"{name_of(address)}-dark", address, is_dark=True) for address in ("/", "/mail", "/outbound")),
    *(Shot(f"{name_of(address)}-phone", address, PHONE) for address in ("/", "/mail", "/approvals", "/rules")),
)
"""The pages of the navigation. The pictures of a message and of the sign-in are made besides."""
BESIDES = ("message", "sign-in")
NAMES = (*(shot.name for shot in SHOTS), *BESIDES)


async def reduced(drawing: Page, picture: bytes) -> bytes:
    """Return the PNG with a palette. `drawing` is any page that may run scripts, such as an empty one."""
    found = await drawing.evaluate(_REDUCE, base64.b64encode(picture).decode())
    width, height, points = found["width"], found["height"], base64.b64decode(found["points"])
    rows = (points[at : at + width] for at in range(0, len(points), width))
    return palette_png(width, height, bytes(found["palette"]), rows)
