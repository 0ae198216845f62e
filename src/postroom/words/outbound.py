"""Words for outgoing mail: its states, results and bounces, the order of the queue, and reports to senders."""

from collections.abc import Mapping

from postroom.words.states import Mood

STAGES = {
    "off": "first in, first out for all; not measured",
    "measure": "first in, first out for all, measured",
    "share": "the fair queue for {share:.0%} of the tenants",
    "all": "the fair queue for all",
}
CONDITIONS = {
    "healthy": "short and prompt",
    "degraded": "long, or mail waits over 30 min",
    "overloaded": "long, and mail waits over 30 min",
}
LANES = {
    "high": ("High", "plans with priority"),
    "normal": ("Normal", "everyone else"),
    "low": ("Low", "new senders and bulk plans"),
    "throttled": ("Throttled", "what was held, drains slowly"),
    "retry": ("Retries", "tried before"),
    "fifo": ("First in, first out", "tenants not on the fair queue"),
}
MAIL_MOODS: Mapping[str, Mood] = {
    "sent": "good",
    "sending": "busy",
    "deferred": "ask",
    "unknown": "ask",
    "partially_sent": "bad",
    "bounced": "bad",
    "rejected": "bad",
    "expired": "bad",
}
SUPPRESSION_CAUSES = {
    "bounce": "it bounced",
    "complaint": "it complained",
    "person": "a person said so",
    "refusals": "refused without a reason",
}
RESULTS = {
    "deferred": "put off, tried again",
    "bounced": "bounced",
    "rejected": "rejected",
    "expired": "given up",
}
BOUNCE_CLASSES = {
    "": ("No class", "the answer did not say"),
    "hard": ("No such address", "suppressed"),
    "soft": ("Trouble at the destination", ""),
    "policy": ("Against its policy", ""),
    "reputation": ("Distrusts our address", ""),
    "full": ("Mailbox full", ""),
    "greylist": ("Wants a second attempt", ""),
    "content": ("Content refused", ""),
    "unexplained": ("Refused without a reason", "suppressed if it happens again"),
}
PAST = {
    "sent": "recorded as sent",
    "not_sent": "queued again",
    "retry": "made due now",
    "cancel": "canceled or stopped",
}
DISCIPLINES = {"fair": "fair queue", "fifo": "first in, first out"}
REPORT_SUBJECTS = {
    "failed": "Your mail was not delivered",
    "delayed": "Your mail is delayed",
    "relayed": "Your mail was delivered",
}
REPORT_SENTENCES = {
    "failed": "Your mail could not be delivered to these recipients:",
    "delayed": "Your mail could not be delivered yet. It is tried again, and you need not send it once more:",
    "relayed": "Your mail was taken by the servers of these recipients, which do not report what becomes of it:",
}
