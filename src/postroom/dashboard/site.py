"""Everything that pages share: templates, files, error pages, whose pages they are, and their update intervals.

Autoescape is always on; text from mail also passes through `shown`.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from postroom import __version__
from postroom.dashboard import display
from postroom.dashboard.assets import load_assets
from postroom.dashboard.broadcast import UpdateIntervals

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = ("shown", "words", "verdict", "iso", "clock", "grouped")
A_YEAR = "public, max-age=31536000, immutable"
ERRORS = {
    403: ("Not allowed", "This is only accepted from Postroom's own page."),
    404: ("Nothing here", "There is no page at this address."),
    405: ("Not possible", "This address does not accept that kind of request."),
    500: ("Something went wrong", "Postroom could not create this page. Its log has the cause."),
    503: ("Not available right now", "Postroom cannot read its data at the moment. Your mail is safe; try again soon."),
}
UNKNOWN_ERROR = ("Not possible", "Postroom could not answer this request.")


class Link(NamedTuple):
    """A link to a page from the others."""

    address: str
    title: str


class Site:
    def __init__(self, account: str, started_at: datetime, intervals: UpdateIntervals | None = None) -> None:
        self.intervals = intervals or UpdateIntervals()
        self.links: list[Link] = []
        self._assets = load_assets()
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update({name: getattr(display, name) for name in FILTERS})
        known_everywhere: dict[str, object] = {
            "asset": {name: asset.address for name, asset in self._assets.items()},
            "account": account,
            "started_at": started_at,
            "version": __version__,
            "pages": self.links,
        }
        self._environment.globals.update(cast(Any, known_everywhere))

    def render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(values)

    def error(self, status: int) -> str:
        """Render a page that says what happened in the reader's words, and reveals nothing internal."""
        title, sentence = ERRORS.get(status, UNKNOWN_ERROR)
        return self.render("error.html", title=title, sentence=sentence)

    async def asset(self, request: Request) -> Response:
        """Serve one of the files that pages load."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None or asset.digest != request.path_params["digest"]:
            raise HTTPException(404)
        return Response(asset.body, media_type=asset.media_type, headers={"Cache-Control": A_YEAR})
