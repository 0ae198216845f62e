"""The audit log: who did what to which object, with filters, and as a file. Nothing in it can be changed."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.people.audit import AuditView, list_audit
from postroom.operations.people.tokens import list_tokens

ON_A_PAGE = 50
EXPORTED_AT_ONCE = 1_000
HIGHEST = 2**62
COLUMNS = ("seq", "at", "actor", "role", "action", "object_type", "object_id", "reason", "before", "after")
RISKY = ("=", "+", "-", "@", "\t", "\r")
"""The characters that a spreadsheet takes for the beginning of a formula."""

WriteLine = Callable[[AuditView], str]


def pages(site: Site) -> list[DashboardPage]:
    return [AuditPage(site)]


class AuditPage(DashboardPage):
    address, title, template = "/audit", "Audit", "audit.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        actor, action = visit.text("actor"), visit.text("action")
        before = visit.number("before", 0, HIGHEST) or None
        found = await list_audit(self._database, ON_A_PAGE, before, actor, action)
        tokens = await list_tokens(self._database)
        return {
            "entries": found.lines,
            "names": {f"token:{each.id}": each.name for each in tokens},
            "actor": actor or "",
            "action": action or "",
            "older": visit.with_filters(before=found.next) if found.next else None,
            "newer": visit.with_filters(before=None) if before else None,
            "csv": visit.with_filters(before=None).replace("/audit", "/audit.csv", 1),
            "json": visit.with_filters(before=None).replace("/audit", "/audit.jsonl", 1),
        }

    def actions(self) -> list[Route]:
        return [Route("/audit.csv", self._csv, methods=["GET"]), Route("/audit.jsonl", self._jsonl, methods=["GET"])]

    async def _csv(self, request: Request) -> Response:
        visit = Visit.of(request, self.address, self._site.zone_of(request))
        return _download(self._lines(visit, _csv_line, _row(COLUMNS)), "text/csv; charset=utf-8", "audit.csv")

    async def _jsonl(self, request: Request) -> Response:
        return _download(
            self._lines(Visit.of(request, self.address, self._site.zone_of(request)), _json_line),
            "application/x-ndjson",
            "audit.jsonl",
        )

    async def _lines(self, visit: Visit, line: WriteLine, first: str = "") -> AsyncIterator[str]:
        """Write all entries that the filters leave, a bounded number at once."""
        actor, action = visit.filters.get("actor"), visit.filters.get("action")
        yield first
        before: int | None = None
        while True:
            found = await list_audit(self._database, EXPORTED_AT_ONCE, before, actor, action)
            yield "".join(map(line, found.lines))
            if found.next is None:
                return
            before = int(found.next)


def _download(lines: AsyncIterator[str], media_type: str, name: str) -> Response:
    disposition = {"Content-Disposition": f'attachment; filename="postroom-{name}"'}
    return StreamingResponse(lines, media_type=media_type, headers=disposition)


def _csv_line(entry: AuditView) -> str:
    return _row([_cell(getattr(entry, column)) for column in COLUMNS])


def _cell(value: object) -> str:
    text = orjson.dumps(value).decode() if isinstance(value, Mapping) else "" if value is None else str(value)
    return f"'{text}" if text.startswith(RISKY) else text


def _row(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _json_line(entry: AuditView) -> str:
    return orjson.dumps({column: getattr(entry, column) for column in COLUMNS}, default=str).decode() + "\n"
