"""The parts of an app on a phone: a manifest, icons, and a worker that shows an empty shell while offline.

The worker keeps files and the empty shell, never a page, mail or an answer of the API. Its own address has no hash,
since browsers look there for a new one; its text has those of the files, so with a new version of Postroom it differs.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial

from postroom.interfaces.dashboard.app_icon import app_icon
from postroom.interfaces.dashboard.assets import DIGEST_LENGTH, Asset, asset_of
from postroom.interfaces.dashboard.navigation import GROUPS, ON_A_PHONE

WORKER = "/static/worker.js"
MANIFEST, EMPTY_SHELL, SCRIPT, ICON = "app.webmanifest", "offline.html", "worker.js", "icon.svg"
KEPT = (EMPTY_SHELL, "offline.js", "postroom.css", ICON)
"""The empty shell, and the files that it loads."""
ICON_SIZES = (180, 192, 512)
"""The first is for iOS, the others are for Android."""
GROUND = {"light": "#f5f6f8", "dark": "#0e1116"}
"""The colour around the pages, which the style sheet calls `--bg`: phones paint their own bars in it."""


def icons(own: Mapping[str, Asset]) -> Iterator[Asset]:
    """Return the icon as PNG; a picture is drawn when it is asked for first."""
    for size in ICON_SIZES:
        yield Asset(f"icon-{size}.png", own[ICON].digest, partial(app_icon, size))


def manifest(address: Mapping[str, str]) -> Asset:
    pictures = [{"src": address[ICON], "sizes": "any", "type": "image/svg+xml"}]
    for size in ICON_SIZES[1:]:
        picture = {"src": address[f"icon-{size}.png"], "sizes": f"{size}x{size}", "type": "image/png"}
        pictures += [picture, {**picture, "purpose": "maskable"}]
    places = [place for group in GROUPS for place in group.places if place.address in ON_A_PHONE[1:]]
    content = {
        "id": "/",
        "name": "Postroom",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": GROUND["light"],
        "icons": pictures,
        "shortcuts": [{"name": each.title, "url": each.address} for each in places],
    }
    return asset_of(MANIFEST, json.dumps(content).encode())


def worker(assets: Mapping[str, Asset]) -> bytes:
    """Return the worker's script, with the addresses of what it keeps."""
    kept = [assets[name].address for name in KEPT]
    script = b"const KEPT = %s;\n%s" % (json.dumps(kept).encode(), assets[SCRIPT].body)
    return b'const CACHE = "postroom-%s";\n%s' % (hashlib.sha256(script).hexdigest()[:DIGEST_LENGTH].encode(), script)
