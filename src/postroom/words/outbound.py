"""Words for outgoing mail: its states, results and bounces, the order of the queue, and reports to senders."""

from collections.abc import Mapping
from typing import assert_never

from postroom.core.counted import counted
from postroom.core.outbound.delivery_health import Condition, Trouble
from postroom.words.states import Mood

STAGES = {
    "off": "first in, first out for all; not measured",
    "measure": "first in, first out for all, measured",
    "share": "the fair queue for {share:.0%} of the tenants",
    "all": "the fair queue for all",
}
CONDITIONS: Mapping[Condition, tuple[str, str, Mood]] = {
    "healthy": ("Fine", "mail arrives, and waits little", ""),
    "degraded": ("Needs a look", "", "ask"),
    "failing": ("Failing", "", "bad"),
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
RECENTLY = "in this hour and the one before"


def trouble_in_words(trouble: Trouble) -> tuple[str, str]:
    """A trouble of delivery in words, with the next step."""
    count, of = f"{trouble.count:,}", f"{trouble.of:,}"
    reason = BOUNCE_CLASSES.get(trouble.about, ("",))[0].lower() if trouble.about else ""
    mostly = f", mostly: {reason}" if reason else ""
    match trouble.kind:
        case "stuck":
            return (
                f"Nothing was delivered {RECENTLY}: all {count} attempts failed or were put off{mostly}.",
                "Read what the servers answered. Check the network, the DNS, and the sign-in at a smart host.",
            )
        case "failed":
            return (
                f"{count} of {of} recipients got nothing {RECENTLY}{mostly}.",
                "Look at the bounces and destinations, and pause the sender or destination that causes them.",
            )
        case "late":
            return (
                f"A mail has waited for {_minutes(int(trouble.about))}, of {counted(trouble.count, 'mail')} that wait.",
                "See whose mail waits longest, and whether its destination answers.",
            )
        case "long":
            return (
                f"{counted(trouble.count, 'mail')} wait; the queue is made for {of} at once.",
                "See which lane is long. Raise the outbound.max_queue setting if this machine can do more.",
            )
        case "put_off":
            return (
                f"{count} of {of} attempts were put off {RECENTLY}{mostly}.",
                "They are tried again. If it lasts, look at the destinations: some may ask for less mail.",
            )
        case "held":
            are = "is" if trouble.count == 1 else "are"
            return (
                f"{counted(trouble.count, 'sender')} {are} held back, with {counted(trouble.of, 'mail')}.",
                "Release those that do no harm; disable the others.",
            )
        case "paused":
            more = trouble.count - 1
            also = f" and {counted(more, 'other destination')} are" if more else " is"
            return (
                f"{trouble.about}{also} paused.",
                "Its mail waits until somebody resumes it."
                if trouble.count == 1
                else "Their mail waits until somebody resumes them.",
            )
        case _:
            assert_never(trouble.kind)


def _minutes(seconds: int) -> str:
    minutes = seconds // 60
    return counted(minutes, "minute") if minutes < 120 else counted(minutes // 60, "hour")


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
