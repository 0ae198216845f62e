"""The requests that a mailbox's connector accepts, and their arguments: checked where they are given, and again by the
connector, which does not trust its callers.
"""

import re
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any, Literal, assert_never, cast

from postroom.core.backfill.window import checked_window
from postroom.core.days import zone_named
from postroom.core.errors import BadInput
from postroom.core.mail.categories import CATEGORIES, chosen_categories
from postroom.core.suggestions import did_you_mean

AskedKind = Literal["sync_now", "ingest", "estimate", "search"]
"""The kinds that the tool `connector.request` offers."""

RequestKind = Literal[AskedKind, "backfill", "backfill_sample"]

MOST_INGESTED = 100
MOST_FOUND = 50
FOUND = 20
LONGEST_QUERY = 1_000
# The requester knows which day it is; here only days that exist matter.
LATEST = date(9000, 1, 1)
# Gmail's ids, and those of IMAP (mailboxes/imap/identity.py), which may end with a Message-ID.
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}|[gemd]-[!-~]{1,300}")


def checked_arguments(kind: RequestKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checked arguments of a request. Raises BadInput, which names the wrong one."""
    match kind:
        case "sync_now" | "backfill":
            refuse_unknown_arguments(given, ())
            return {}
        case "ingest":
            refuse_unknown_arguments(given, ("message_ids",))
            return {"message_ids": message_ids(given.get("message_ids"))}
        case "estimate":
            refuse_unknown_arguments(given, ("query",))
            return {"query": search_query(given.get("query"))}
        case "search":
            refuse_unknown_arguments(given, ("query", "max", "ingest"))
            search = {"query": search_query(given.get("query")), "max": most_found(given.get("max", FOUND))}
            return {**search, "ingest": True} if _flag("ingest", given.get("ingest", False)) else search
        case "backfill_sample":
            refuse_unknown_arguments(given, ("categories", "date_from", "date_to", "time_zone"))
            return sampled_backfill(given)
        case _:
            assert_never(kind)


def is_message_id(text: str) -> bool:
    """Whether the text looks like the id of a message at a provider."""
    return _ID.fullmatch(text) is not None


def refuse_unknown_arguments(arguments: Mapping[str, Any], known: Collection[str]) -> None:
    for name in arguments:
        if name not in known:
            remedy = did_you_mean(str(name), known, f"known are: {', '.join(known) or 'none'}", quoted=False)
            raise BadInput(str(name)[:80], "is unknown", remedy)


def message_ids(given: object) -> list[str]:
    remedy = f"give a list of 1 to {MOST_INGESTED} ids, as a search lists them"
    if not isinstance(given, list):
        raise BadInput("message_ids", "is missing" if given is None else f"is a {type(given).__name__}", remedy)
    ids = cast("list[object]", given)
    if not 1 <= len(ids) <= MOST_INGESTED:
        raise BadInput("message_ids", f"{len(ids)} were given", remedy)
    found: dict[str, None] = {}
    for place, id in enumerate(ids):
        if not isinstance(id, str) or not is_message_id(id):
            raise BadInput(f"message_ids.{place}", f"{str(id)[:80]!r} is not the id of a message", remedy)
        found[id] = None
    return list(found)


def search_query(given: object) -> str:
    remedy = f"give a search as in Gmail's own search box, of 1 to {LONGEST_QUERY:,} characters on one line"
    if not isinstance(given, str):
        raise BadInput("query", "is missing" if given is None else f"is a {type(given).__name__}", remedy)
    if not given.strip() or len(given) > LONGEST_QUERY or not given.isprintable():
        raise BadInput("query", f"{given[:80]!r} with {len(given):,} characters is refused", remedy)
    return given.strip()


def _flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise BadInput(name, f"is {str(given)[:80]!r}", "use true or false")
    return given


def most_found(given: object) -> int:
    if type(given) is not int or not 1 <= given <= MOST_FOUND:
        raise BadInput("max", f"is {str(given)[:80]!r}", f"use a whole number from 1 to {MOST_FOUND}")
    return given


def sampled_backfill(given: Mapping[str, Any]) -> dict[str, Any]:
    """The categories and the window of a backfill that is to be estimated."""
    zone = zone_named(str(given.get("time_zone", "UTC")))
    window = checked_window(_day("date_from", given), _day("date_to", given), zone, LATEST)
    names = given.get("categories")
    if not isinstance(names, list) or not names:
        raise BadInput("categories", "is not a list of categories", f"choose from {', '.join(CATEGORIES)}")
    return {
        "categories": [each.name for each in chosen_categories([str(name) for name in cast("list[object]", names)])],
        "date_from": window.date_from.isoformat(),
        "date_to": window.date_to.isoformat(),
        "time_zone": zone.key,
    }


def _day(name: str, given: Mapping[str, Any]) -> date:
    try:
        return date.fromisoformat(str(given.get(name)))
    except ValueError:
        raise BadInput(name, f"{str(given.get(name))[:40]!r} is not a day", "write it as 2026-11-16") from None
