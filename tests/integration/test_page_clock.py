"""The clock of the pages is the clock of what their forms do."""

from pathlib import Path

from postroom.operations.people.tokens import list_tokens
from postroom.store.engine.database import Database
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.page_app import visiting_pages, visitor
from support.page_forms import submit

FORMS = {
    "/pause": {},
    "/resume": {},
    "/rules/starter/newsletters/add": {},
    "/settings/people": {"name": "nils", "role": "viewer"},
    "/settings/people/nils/role": {"role": "operator"},
    "/settings/protection": {"kind": "sender", "value": "ida@shop.example", "reason": "she is my sister"},
    "/settings/protection/remove": {"kind": "sender", "value": "ida@shop.example"},
    "/settings/tokens": {"role": "metrics", "lifetime": "30 days"},
}


async def test_the_clock_of_the_pages_reaches_the_audit_log(
    sqlite: Database, tmp_path: Path, clock: ManualClock
) -> None:
    async with visiting_pages(sqlite, tmp_path, visitor("admin"), clock) as page:
        for address, fields in FORMS.items():
            assert (await submit(page, address, fields)).status_code in (200, 303), address
    written = await sqlite.run(list_audit(100))
    assert len(written) >= len(FORMS)
    assert {each.at for each in written} == {clock()}
    [token] = await list_tokens(sqlite)
    assert token.created_at == clock()


async def test_a_form_signs_with_its_reason_or_with_the_usual_one(
    sqlite: Database, tmp_path: Path, clock: ManualClock
) -> None:
    async with visiting_pages(sqlite, tmp_path, visitor("admin"), clock) as page:
        for address, fields in FORMS.items():
            await submit(page, address, fields)
    reasons = {each.action: each.reason for each in await sqlite.run(list_audit(100))}
    assert "she is my sister" in reasons.values()
    assert set(reasons.values()) <= {"she is my sister", "on the page"}
