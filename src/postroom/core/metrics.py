"""Every metric: its name, its meaning, and the few attributes it may carry.

No attribute ever holds a message id, a sender's address, or any text of a mail. Its values come from closed lists, or
are the names of this installation's own connectors, queues and tiers. `endpoint_identity` is one of these: one value
per connector.
"""

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["counter", "gauge", "histogram"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
MILLISECONDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0, 30000.0, 300000.0, 3600000.0)


# Prometheus appends the unit to the name. A unit in braces is none: it only names the counted things.
PROMETHEUS_UNITS = {"s": "_seconds", "ms": "_milliseconds", "By": "_bytes"}


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One instrument. There is one object for each, compared by identity: it is half the key of every count.

    `buckets` are the upper bounds of a histogram. `known` are attribute values known beforehand; they are exported as
    0 from the start, since a query for the growth of a counter would miss its first step.
    """

    name: str
    kind: MetricKind
    unit: str
    description: str
    attributes: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    @property
    def prometheus_name(self) -> str:
        """Its name in Prometheus, to which a histogram adds `_bucket`, `_sum` and `_count`."""
        name = self.name.replace(".", "_") + PROMETHEUS_UNITS.get(self.unit, "")
        return f"{name}_total" if self.kind == "counter" else name


MESSAGE_RECEIVED = Metric(
    "butlers.switchboard.message_received",
    "counter",
    "{message}",
    "New messages ingested, by channel and queue.",
    ("channel", "queue_name", "policy_tier"),
)
MESSAGE_DEDUPLICATED = Metric(
    "butlers.switchboard.message_deduplicated",
    "counter",
    "{message}",
    "Messages ingested again: `key` and `event` are copies, `text` is the same text again, "
    "`upgrade` is the full message after its metadata.",
    ("queue_name", "reason"),
)
MESSAGE_REFUSED = Metric(
    "butlers.switchboard.message_refused",
    "counter",
    "{message}",
    "Messages not accepted: `bad_input`, `conflict`, `no_account`, or `no_room`.",
    ("reason",),
    known=(("bad_input",), ("conflict",), ("no_account",), ("no_room",)),
)
ACCEPT_LATENCY = Metric(
    "butlers.switchboard.ingress_accept_latency",
    "histogram",
    "s",
    "From the arrival of a message until it is on disk.",
    ("queue_name",),
    SECONDS,
)
QUEUE_DEPTH = Metric(
    "butlers.switchboard.queue_depth",
    "gauge",
    "{message}",
    "Messages in a queue: waiting, or leased to a consumer.",
    ("queue_name", "policy_tier", "state"),
)
DEQUEUE_BY_TIER = Metric(
    "butlers.switchboard.queue.dequeue_by_tier",
    "counter",
    "{message}",
    "Messages leased from a queue; `starvation_override` says that the guard decided.",
    ("policy_tier", "queue_name", "starvation_override"),
)
LIFECYCLE_TRANSITION = Metric(
    "butlers.switchboard.lifecycle_transition",
    "counter",
    "{transition}",
    "Moves of messages from one state to another.",
    ("queue_name", "from_state", "to_state"),
)
MESSAGE_EVENT = Metric(
    "butlers.switchboard.message_event",
    "counter",
    "{event}",
    "The events message.queued, message.promoted, message.coalesced and message.auto_acked.",
    ("event", "queue_name", "priority"),
)
PROCESS_LATENCY = Metric(
    "butlers.buffer.process_latency_ms",
    "histogram",
    "{millisecond}",  # the name says it already, and Prometheus would append it
    "From the acceptance of a message to its end.",
    ("queue_name", "policy_tier"),
    MILLISECONDS,
)
TIER_ASSIGNED = Metric(
    "butlers.connector.gmail.priority_tier_assigned",
    "counter",
    "{message}",
    "Mail ingested, by its tier and the rule that assigned it.",
    ("provider", "endpoint_identity", "policy_tier", "assignment_rule"),
)
TIER_1_INGESTED = Metric(
    "butlers.connector.gmail.tier_1_ingested",
    "counter",
    "{message}",
    "Mail ingested in full.",
    ("provider", "endpoint_identity"),
)
TIER_2_METADATA = Metric(
    "butlers.connector.gmail.tier_2_metadata",
    "counter",
    "{message}",
    "Mail ingested as metadata only.",
    ("provider", "endpoint_identity"),
)
TIER_3_SKIPPED = Metric(
    "butlers.connector.gmail.tier_3_skipped",
    "counter",
    "{message}",
    "Mail that a rule skips; only this count is kept.",
    ("provider", "endpoint_identity"),
)
KNOWN_CONTACT_DEGRADED = Metric(
    "butlers.connector.gmail.known_contact_degraded",
    "counter",
    "{message}",
    "Mail whose tier was assigned without contacts, which were missing or too old.",
    ("provider", "endpoint_identity"),
)
ACCESS_REFUSED = Metric(
    "butlers.switchboard.access_refused",
    "counter",
    "{request}",
    "Requests refused: `no_token`, `bad_token`, `expired`, `revoked`, `role`, `identity` or `channel`.",
    ("reason",),
    known=(("no_token",), ("bad_token",), ("expired",), ("revoked",), ("role",), ("identity",), ("channel",)),
)

LOG_SIZE = Metric(
    "butlers.store.write_ahead_log_size",
    "gauge",
    "By",
    "The size of SQLite's write-ahead log. From 112 MiB on a process holds an old snapshot; nothing new is accepted if "
    "the disk has no room for it a second time.",
    (),
)

DATABASE_SIZE = Metric(
    "butlers.store.database_size",
    "gauge",
    "By",
    "The size of the database: SQLite's file without its log, or the whole PostgreSQL database.",
    (),
)
JOBS = Metric(
    "butlers.jobs.count",
    "gauge",
    "{job}",
    "Jobs by type and stage: `ready`, `running`, `scheduled`, `retrying`, `parked`, and `failed`, which a person may "
    "retry. Of each stage at most 10,000 are counted.",
    ("type", "stage"),
)
ACTIONS = Metric(
    "butlers.actions.count",
    "gauge",
    "{action}",
    "Actions that have not ended, by state: `queued`, `approved_pending` and `executing`; and `failed`, those of the "
    "last 24 hours.",
    ("state",),
)
APPROVAL_AGE = Metric(
    "butlers.approvals.oldest_wait",
    "gauge",
    "s",
    "How long the oldest action that needs approval has been waiting; 0 if there is none. Their number is "
    "`butlers.actions.count` with the state `approved_pending`.",
    (),
)
MODEL_SPEND = Metric(
    "butlers.model.spend_today",
    "gauge",
    "{US dollar}",
    "The cost of the model since midnight UTC in dollars, including the reserve for calls under way.",
    (),
)
MODEL_CALLS = Metric(
    "butlers.model.calls_today",
    "gauge",
    "{call}",
    "Calls to the model since midnight UTC, by state: `started`, `answered`, `refused` or `failed`.",
    ("state",),
)
CONNECTION_REFUSED = Metric(
    "butlers.http.refused",
    "counter",
    "{connection}",
    "Connections and requests that the limits of `web` ended, by reason: `headers_too_late`, `body_too_late`, "
    "`body_too_large`, `url_too_long`, `headers_too_large`, `address_crowded`, `crowded`, `silent`, `slow_reader`, "
    "`pipelined` or `bad_request`.",
    ("reason",),
    known=tuple(
        (reason,)
        for reason in (
            "headers_too_late",
            "body_too_late",
            "body_too_large",
            "url_too_long",
            "headers_too_large",
            "address_crowded",
            "crowded",
            "silent",
            "slow_reader",
            "pipelined",
            "bad_request",
        )
    ),
)

OUTBOUND_LEASED = Metric(
    "butlers.outbound.mail_leased",
    "counter",
    "{mail}",
    "Outgoing mail that took its turn, by the discipline (`fair` or `fifo`) and its sender's priority; retries count.",
    ("discipline", "lane"),
)
OUTBOUND_DELIVERED = Metric(
    "butlers.outbound.mail_delivered",
    "counter",
    "{mail}",
    "Outgoing mail that was delivered.",
    ("discipline", "lane"),
)
OUTBOUND_WAIT = Metric(
    "butlers.outbound.wait",
    "histogram",
    "s",
    "From the acceptance of outgoing mail to its first lease.",
    ("discipline", "lane"),
    LONG_SECONDS,
)
OUTBOUND_LATENCY = Metric(
    "butlers.outbound.delivery_latency",
    "histogram",
    "s",
    "From the acceptance of outgoing mail to its delivery.",
    ("discipline", "lane"),
    LONG_SECONDS,
)
OUTBOUND_CHOOSING = Metric(
    "butlers.outbound.choosing",
    "histogram",
    "s",
    "The time to choose a batch of outgoing mail.",
    (),
    SECONDS,
)
OUTBOUND_WAITING = Metric(
    "butlers.outbound.waiting",
    "gauge",
    "{mail}",
    "Outgoing mail that waits for its turn, by lane. This and the gauges below are measured every minute, by the "
    "process that leads.",
    ("lane",),
)
OUTBOUND_GINI = Metric(
    "butlers.outbound.gini",
    "gauge",
    "{coefficient}",
    "Gini coefficient of the service divided by weight, of this hour and the last, by level: `tenant`, `domain` or "
    "`sender`. 0 is equal.",
    ("discipline", "level"),
)
OUTBOUND_JAIN = Metric(
    "butlers.outbound.jain",
    "gauge",
    "{index}",
    "Jain's index of the same. 1 is equal.",
    ("discipline", "level"),
)
OUTBOUND_LARGEST_SHARE = Metric(
    "butlers.outbound.largest_share",
    "gauge",
    "{share}",
    "The largest part of all service that one of them had, in the same time.",
    ("discipline", "level"),
)
OUTBOUND_THROTTLED = Metric(
    "butlers.outbound.throttled_senders",
    "gauge",
    "{sender}",
    "Senders with a throttle: `held`, or `draining` since its time is over.",
    ("state",),
)
OUTBOUND_THROTTLED_MAIL = Metric(
    "butlers.outbound.throttled_mail",
    "gauge",
    "{mail}",
    "Outgoing mail that waits since its sender is throttled.",
    (),
)
OUTBOUND_FALSE_POSITIVES = Metric(
    "butlers.outbound.false_positives",
    "gauge",
    "{share}",
    "Of the throttles for a score that began within a day, the share that a person has released.",
    (),
)
OUTBOUND_TIME_TO_DETECT = Metric(
    "butlers.outbound.time_to_detect",
    "gauge",
    "s",
    "From the first hour of the counts behind a throttle to the throttle: the median of a day.",
    (),
)
OUTBOUND_HEALTH = Metric(
    "butlers.outbound.health",
    "gauge",
    "{multiplier}",
    "The health of the outbound queue, from 0.1 to 2; below 1 it is degraded.",
    (),
)
OUTBOUND_LANE_LIMIT = Metric(
    "butlers.outbound.lane_limit",
    "gauge",
    "{mail}",
    "How many mails of a lane a process delivers at the same time, while other lanes have mail too.",
    ("lane",),
)
OUTBOUND_REPORT = Metric(
    "butlers.outbound.report",
    "counter",
    "{report}",
    "Reports about sent mail that connectors found in their mailboxes: `recorded`, `doubted` if their writer was not "
    "proven to know, or `ignored` if they say nothing new about mail of ours.",
    ("outcome",),
    known=(("recorded",), ("doubted",), ("ignored",)),
)

SUBMISSION_ACCEPTED = Metric(
    "butlers.submission.accepted",
    "counter",
    "{message}",
    "Mails of senders that were accepted: over `smtp`, `http` or `mcp`.",
    ("door",),
    known=(("smtp",), ("http",), ("mcp",)),
)
SUBMISSION_REFUSED = Metric(
    "butlers.submission.refused",
    "counter",
    "{message}",
    "Mails of senders that were refused: `content`, `not_admitted` (limits, throttles, pauses), `conflict`, `no_room` "
    "or `database`.",
    ("door", "reason"),
)
SUBMISSION_LOGIN = Metric(
    "butlers.submission.login",
    "counter",
    "{login}",
    "Logins of senders over SMTP: `right`, `wrong`, `throttled` after too many failures, or `busy`.",
    ("outcome",),
    known=(("right",), ("wrong",), ("throttled",), ("busy",)),
)
SUBMISSION_CONNECTION = Metric(
    "butlers.submission.connection",
    "counter",
    "{connection}",
    "Connections to the submission server: `opened`, or ended by its limits: `crowded`, `address_crowded`, `too_late`, "
    "`bare_line_end`, `errors` or `too_large`.",
    ("outcome",),
    known=tuple(
        (each,) for each in ("opened", "crowded", "address_crowded", "too_late", "bare_line_end", "errors", "too_large")
    ),
)

METRICS = tuple(each for each in tuple(globals().values()) if isinstance(each, Metric))
"""All of them, in the order in which they are exported."""
