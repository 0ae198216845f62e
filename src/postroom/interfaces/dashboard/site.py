"""Everything that pages share: templates, files, error pages, whose pages they are, and their update intervals."""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from postroom import __version__
from postroom.core.days import zone_named
from postroom.interfaces.dashboard.assets import MEDIA_TYPES, Asset, asset_of, load_assets
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.compression import accepts_gzip
from postroom.interfaces.dashboard.drafts import Drafts
from postroom.interfaces.dashboard.flow import flow
from postroom.interfaces.dashboard.installable import EMPTY_SHELL, GROUND, icons, manifest, worker
from postroom.interfaces.dashboard.navigation import COMMANDS, ON_A_PHONE, Group, groups_of, place_of
from postroom.interfaces.dashboard.reader_zone import reader_zone
from postroom.interfaces.dashboard.refused_forms import RefusedForm
from postroom.interfaces.dashboard.rendering import make_environment
from postroom.interfaces.dashboard.windows import per
from postroom.operations.parts import Parts
from postroom.words.problems import PAGE_ERRORS, UNKNOWN_PAGE_ERROR

if TYPE_CHECKING:
    from postroom.interfaces.dashboard.boards import Boards
    from postroom.operations.people.kept_forms import KeptForm
    from postroom.operations.people.sessions import LiveSession

AskAgain = Callable[["Request", "LiveSession", "KeptForm"], Awaitable["Response"]]
"""Shows the page on which people prove again who they are, and keeps the form meanwhile."""
CarryOut = Callable[["Request", "LiveSession", "KeptForm", str], Awaitable["Response"]]
"""Carries out a form that was kept; with a sentence that says why it may not be any more, shows it again."""
A_YEAR = "public, max-age=31536000, immutable"


class Site:
    """`account` says whose pages these are: the text, or the function that reads it, since accounts come and go."""

    def __init__(
        self, parts: Parts, account: str | Callable[[], Awaitable[str]], intervals: UpdateIntervals | None = None
    ) -> None:
        self.parts = parts
        self._account = account
        self.intervals = intervals or UpdateIntervals()
        self.tabs_of: Counter[str] = Counter()
        self.ask_again: AskAgain | None = None
        self.again_forms: dict[str, CarryOut] = {}
        self.refused = Drafts[RefusedForm]()
        self._boards: dict[str, Boards] = {}
        self._assets = dict[str, Asset]()
        self._addresses = dict[str, str]()
        self._environment = make_environment(
            asset=self._addresses,
            started_at=parts.clock(),
            current_time=parts.clock,
            zone=zone_named(parts.settings.time_zone),
            flow=flow,
            per=per,
            version=__version__,
            navigation=self.navigation,
            place_of=place_of,
            on_a_phone=ON_A_PHONE,
            commands=COMMANDS,
            ground=GROUND,
        )
        own = load_assets()
        self._add_assets(*own.values(), *icons(own))
        self._add_assets(manifest(self._addresses))
        self._add_assets(asset_of(EMPTY_SHELL, self.render(EMPTY_SHELL).encode()))

    def _add_assets(self, *assets: Asset) -> None:
        self._assets |= {each.name: each for each in assets}
        self._addresses |= {each.name: each.address for each in assets}

    def render(self, name: str, /, **values: object) -> str:
        return self._environment.get_template(name).render(values)

    def zone_of(self, request: HTTPConnection) -> ZoneInfo:
        """Return the zone in which pages are drawn for this reader: the browser's, or that of the settings."""
        return reader_zone(request, zone_named(self.parts.settings.time_zone))

    def add_templates(self, folder: Path) -> None:
        """Let a page of another package use templates of its own."""
        known = cast(BaseLoader, self._environment.loader)
        self._environment.loader = ChoiceLoader([known, FileSystemLoader(folder)])

    def add(self, address: str, boards: "Boards") -> None:
        """Make a page known to the others."""
        self._boards[address] = boards

    def navigation(self) -> list[Group]:
        return groups_of(set(self._boards))

    def look_again(self) -> None:
        """Read every page again after a change through one of them."""
        for each in self._boards.values():
            each.look_again()

    async def account(self) -> str:
        """Return whose pages these are, which every page shows."""
        return self._account if isinstance(self._account, str) else await self._account()

    async def waiting(self) -> int:
        """Return the number of actions that wait for a yes, which every page shows."""
        return await self.parts.overview.count_waiting()

    def error(self, status: int, detail: str = "") -> str:
        """Render a page that says what happened in the reader's words, and reveals nothing internal."""
        title, sentence = PAGE_ERRORS.get(status, UNKNOWN_PAGE_ERROR)
        return self.render("error.html", title=title, sentence=detail or sentence)

    async def asset(self, request: Request) -> Response:
        """Serve one of the files that pages load."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None or asset.digest != request.path_params["digest"]:
            raise HTTPException(404)
        headers = {"Cache-Control": A_YEAR, "Vary": "Accept-Encoding"}
        if not accepts_gzip(request):
            return Response(asset.body, media_type=asset.media_type, headers=headers)
        return Response(asset.packed, media_type=asset.media_type, headers=headers | {"Content-Encoding": "gzip"})

    async def worker(self, _request: Request) -> Response:
        """Serve the script that browsers run beside the pages; it may be asked for from all of them."""
        script = worker(self._assets)
        return Response(script, media_type=MEDIA_TYPES[".js"], headers={"Service-Worker-Allowed": "/"})
