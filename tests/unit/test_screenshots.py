"""The documentation has a picture of every page, small enough, and shows each of them."""

import re
import struct

import pytest

from postroom.interfaces.dashboard.navigation import GROUPS
from support.screenshots import FOLDER, LARGEST, NAMES, PHONE, SHOTS

DOCS = FOLDER.parent
TOUR = (DOCS / "how-to" / "dashboard.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_there_and_small(name: str) -> None:
    picture = (FOLDER / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) <= LARGEST
    width, _height = struct.unpack(">II", picture[16:24])
    assert width == (PHONE[0] if name.endswith("-phone") else 1280)


def test_there_are_no_pictures_of_pages_that_are_gone() -> None:
    assert {each.stem for each in FOLDER.glob("*.png")} == set(NAMES)


def test_every_page_has_its_picture_in_the_tour() -> None:
    assert {place.address for group in GROUPS for place in group.places} <= {shot.address for shot in SHOTS}
    shown = re.findall(r"!\[[^\]]{10,}\]\(\.\./screenshots/([a-z-]+)\.png\)", TOUR)
    assert sorted(shown) == sorted(NAMES)


def test_the_readme_shows_the_first_page() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "(docs/screenshots/overview.png)" in readme
