"""A mailbox with rules and mail of today, and the forms of the rule pages."""

import asyncio
from html import unescape

import httpx2

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Database
from postroom.store.rules.rules import RuleView, list_rules
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

SHOP = RuleDraft("shop", {"sender_domain": "shop.example"}, "archive")
CLUB = RuleDraft("club", {"list_id": "chess"}, "apply_label", {"label": "Club"}, description="The chess club.")
PARCEL = Sample("m1", "ida@shop.example", "Your parcel")
INVOICE = Sample("m2", "ida@shop.example", "Your invoice")
LUNCH = Sample("m3", "uta@home.example", "Lunch?")
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg onload=alert(1)>",
    "' onmouseover='alert(1)' x='",
    "</td></tr></table><h1>Postroom was here</h1>",
    "{{ 7 * 7 }}{% raw %}",
    "<div hx-get='/healthz' hx-trigger='load'>",
    "W" * 190,
)
SIEVE = """require ["fileinto"];
if header :contains "subject" "invoice" { fileinto "Bills"; }
if size :over 1M { redirect "x@y.example"; }
if true { vacation "hi"; }
"""


async def mailbox(database: Database, *rules: RuleDraft) -> MailSetup:
    """A mailbox with these rules and no mail, at the present time."""
    clock = ManualClock()
    clock.now = wall_clock()
    box = await MailSetup(JobSetup(database, clock)).opened()
    if rules:
        await box.rules(*rules)
    return box


async def stored(database: Database) -> dict[str, RuleView]:
    """The rules by name, in order."""
    return {view.name: view for view in await database.run(list_rules())}


def written(view: RuleView | None = None, /, **changes: str | list[str]) -> dict[str, str | list[str]]:
    """The form of a rule that archives the mail of a shop, filled in like this."""
    fields: dict[str, str | list[str]] = {
        "way": "form",
        "rule": "" if view is None else str(view.id),
        "version": "" if view is None else str(view.version),
        "name": "shop",
        "joining": "and",
        "kind": ["from", ""],
        "how": ["is", "is"],
        "value": ["@shop.example", ""],
        "action": ["archive", ""],
        "argument": ["", ""],
        "scope": "global",
        "scope_ref": "",
        "priority": "100",
        "standing": "on",
    }
    return {**fields, **changes}


async def page_with(client: httpx2.AsyncClient, address: str, said: str) -> str:
    """The page, as soon as it says this: it works meanwhile."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page = unescape((await client.get(address)).text)
            if said in page:
                return page
