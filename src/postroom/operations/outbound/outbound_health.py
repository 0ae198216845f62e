"""Whether outgoing mail arrives, from the queue as it is now and the results of the last hours."""

from collections import Counter
from datetime import datetime

from postroom.core.outbound.delivery_health import RECENT, DeliveryFacts, DeliveryHealth, delivery_health
from postroom.outbound.queue.queue_watch import health_of
from postroom.settings.outbound import OutboundSettings
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound.destinations import list_destination_pauses
from postroom.store.outbound.outbound_figures import held_by_throttles, waiting_lanes
from postroom.store.outbound.outbound_results import load_results
from postroom.store.outbound.sender_counts import next_hour


async def outbound_health(database: Database, settings: OutboundSettings, now: datetime) -> DeliveryHealth:
    """Judge delivery by this hour and the one before, whatever window a person looks at."""
    queue = health_of(await database.run(waiting_lanes()), settings.max_queue, now)
    results = await database.run(load_results(hour_of(now - RECENT), next_hour(now), 0))
    held = await database.run(held_by_throttles(now))
    paused = await database.run(list_destination_pauses())
    counts, reasons = Counter[str](), Counter[str]()
    for each in results.classes:
        counts[each.result] += each.count
        reasons[each.bounce_class] += 0 if each.result == "sent" else each.count
    return delivery_health(
        DeliveryFacts(
            queue.queued,
            queue.oldest_wait,
            settings.max_queue,
            counts["sent"],
            counts["deferred"],
            counts["bounced"] + counts["rejected"] + counts["expired"],
            reasons,
            held.senders,
            held.mail,
            [each.destination for each in paused],
        )
    )
