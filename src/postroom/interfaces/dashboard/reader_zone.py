"""The time zone of whoever looks at a page, in which all of the page is drawn.

`static/zone.js` writes the browser's zone into a cookie. It chooses how times are shown and where "today" and a day in
a form begin, and nothing else. Without it, or if it is no zone, the page is drawn in the zone of the settings.
"""

import re
from zoneinfo import ZoneInfo

from starlette.requests import HTTPConnection

from postroom.core.days import zone_named
from postroom.core.errors import BadInput

COOKIE = "postroom-zone"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}")


def reader_zone(request: HTTPConnection, otherwise: ZoneInfo) -> ZoneInfo:
    given = request.cookies.get(COOKIE, "")
    if not _NAME.fullmatch(given):
        return otherwise
    try:
        return zone_named(given)
    except BadInput:
        return otherwise
