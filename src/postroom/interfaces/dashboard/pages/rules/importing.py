"""Bring rules from Gmail, Sieve, YAML or JSON: see what comes over, keep it off, then turn it on."""

from collections import Counter
from collections.abc import Mapping
from typing import get_args

from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from postroom.core.counted import counted
from postroom.core.errors import BadInput, NotFound
from postroom.interfaces.dashboard.drafts import Drafts
from postroom.interfaces.dashboard.forms import SEE_OTHER, Confirmation, Form, form_route
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.rules.rule_exchange import RuleFormat, enable_rules, format_of
from postroom.operations.rules.rule_import import ReadImport, keep_import, read_import

FORMATS: tuple[RuleFormat, ...] = get_args(RuleFormat)
MOST_KEPT = 20
MOST_ROWS = 1_000


class ImportPage(DashboardPage):
    address, title, template = "/rules/import", "Import rules", "rules/import.html"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._files = Drafts[ReadImport](MOST_KEPT)

    async def read(self, visit: Visit) -> Mapping[str, object]:
        id = visit.text("file")
        found = self._files.find(id)
        if id is not None and found is None:
            raise NotFound("this file is not kept any more; give it again")
        counts = Counter(row.verdict for row in found.rows) if found else Counter[str]()
        return {"file": id, "found": found, "counts": counts, "most_rows": MOST_ROWS}

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/rules/import/read", self._read),
            form_route(self._site, "/rules/import/keep", self._keep),
            form_route(self._site, "/rules/import/enable", self._enable),
        ]

    async def _read(self, form: Form) -> Response:
        content, name = await _content(form)
        chosen: list[RuleFormat] = [each for each in FORMATS if each == form.text("format")]
        format = chosen[0] if chosen else format_of(name, content)
        found = await read_import(self._database, content, format)
        return RedirectResponse(f"/rules/import?file={self._files.keep(found)}", SEE_OTHER)

    async def _keep(self, form: Form) -> Confirmation:
        found = await keep_import(form.by, self._find_import(form))
        kept = f"/rules/import?file={self._files.keep(found)}"
        many = counted(len(found.added), "rule")
        return Confirmation(f"{many} came over. What came over is off until you turn it on.", to=kept)

    async def _enable(self, form: Form) -> Confirmation:
        names = self._find_import(form).harmless
        count = await enable_rules(form.by, names)
        return Confirmation(f"{counted(count, 'rule')} {'is' if count == 1 else 'are'} on.", to="/rules")

    def _find_import(self, form: Form) -> ReadImport:
        found = self._files.find(form.text("file"))
        if found is None:
            raise NotFound("this file is not kept any more; give it again")
        return found


async def _content(form: Form) -> tuple[bytes, str]:
    """Return the uploaded file and its name, or the pasted text."""
    upload, pasted = form.fields.get("upload"), form.fields.get("pasted")
    if isinstance(upload, UploadFile) and upload.filename:
        return await upload.read(), upload.filename
    if isinstance(pasted, str) and pasted.strip():
        return pasted.encode("utf-8", "replace"), ""
    raise BadInput("file", "there is none", "choose a file, or paste its text")
