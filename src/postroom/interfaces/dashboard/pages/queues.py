"""The queues: what waits in each tier and for how long, what was passed over, and what ended unread."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.tiers import tier_series, with_gaps
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.windows import WINDOW_CHOICES, chosen_window
from postroom.operations.jobs.queue_board import (
    CHANNELS,
    ENDED_KINDS,
    LISTED,
    MOST_MEMBERS,
    EndedKind,
    list_ended,
    load_members,
    load_queue,
    peek_messages,
    queue_names,
)
from postroom.operations.overview.volumes import recorded_spans
from postroom.words.states import ENDED_EVENTS, EVENT_STATES

DEFAULT_KIND: EndedKind = "summaries"


def pages(site: Site) -> list[DashboardPage]:
    return [QueuesPage(site)]


class QueuesPage(DashboardPage):
    address, title, template = "/queues", "Queues", "queues.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        names = await queue_names(self._database, self._parts.queues)
        queue = visit.choice("queue", names, names[0])
        window = chosen_window(visit)
        kind: EndedKind = visit.choice("ended", ENDED_KINDS, DEFAULT_KIND)
        before = visit.number("before", 0, 2**62) or None
        summary = visit.text("summary")
        now = self._clock()
        board, peeked, ended = await asyncio.gather(
            load_queue(self._database, self._parts.queues, self._clock, queue, window),
            peek_messages(self._database, self._parts.queues, queue),
            list_ended(self._database, queue, kind, LISTED, before),
        )
        return {
            "board": board,
            "names": names,
            "window": window,
            "windows": WINDOW_CHOICES,
            "kind": kind,
            "kinds": tuple(ENDED_EVENTS.items()),
            "series": tier_series(board.depths.by_tier),
            "arrivals": with_gaps(
                tier_series(board.arrived.by_tier), await recorded_spans(self._database, board.window)
            ),
            "peeked": peeked,
            "ended": ended,
            "opened": None if summary is None else await load_members(self._database, _id("summary", summary)),
            "most_members": MOST_MEMBERS,
            "read_at": now,
            "event_states": EVENT_STATES,
        }


def _id(field: str, text: str) -> UUID:
    return read_id(text, BadInput(field, f"{text[:40]!r} is no id", "open it from the list"))
