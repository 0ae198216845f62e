"""The reader's zone: that of the cookie if it is one, otherwise that of the settings."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from postroom.interfaces.dashboard.reader_zone import COOKIE, reader_zone

TOKYO = ZoneInfo("Asia/Tokyo")


def zone_for(cookie: str) -> ZoneInfo:
    headers = [(b"cookie", f"{COOKIE}={cookie}".encode())]
    return reader_zone(Request({"type": "http", "headers": headers}), TOKYO)


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC"])
def test_the_browsers_zone_is_used(name: str) -> None:
    assert zone_for(name).key == name


@pytest.mark.parametrize(
    "hostile",
    [
        "", "É/x", "Nowhere/City", "../../../etc/passwd", "/etc/localtime", "Europe", "Europe/", "a" * 5_000,
        "Europe/Berlin<script>", "tzdata.zi", "posix/..", "Europe/Berlin; x=1", '"Europe/Berlin', "Europe/Berlin\x00",
    ],
)  # fmt: skip
def test_anything_else_is_ignored(hostile: str) -> None:
    assert zone_for(hostile).key in ("Asia/Tokyo", hostile.partition(";")[0])


@given(st.text(max_size=60))
def test_no_cookie_fails(cookie: str) -> None:
    assert zone_for(cookie).key
