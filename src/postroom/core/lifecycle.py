"""Every state machine of Postroom as a table: its states, and the legal moves between them.

The schema repeats the states as CHECK constraints; a test compares the two. Verbs of the store are named after the
moves, and may only make a move that is listed here.

    job       queued ⇄ running → completed | failed | canceled          failed | canceled → queued by the user's retry
                                                                        failed → canceled when the user dismisses it
    action    approved_pending → queued → executing → completed | failed     failed | canceled → executing by a retry
                                                                        rejected → approved_pending within seconds
    inbox     waiting ⇄ leased → done | failed                          and three ends without processing
    backfill  pending → active → completed, with pause, cap and error   (design, section 9)
    delivery  queued → sending → sent | bounced | unknown               of a mail; it follows from its recipients
    recipient queued → sending → sent | bounced | rejected | unknown    each recipient of an outgoing mail
    account   active ⇄ paused ⇄ needs_consent → removed                 removed → active when it is connected again
    request   queued ⇄ leased → answered | failed                       queued | leased → expired when its time is over
    call      started → answered | refused | failed                     a call of the model
    proposal  open → accepted | dismissed                               a proposed rule, decided by the user
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from postroom.core.errors import IllegalMove

JobState = Literal["queued", "running", "completed", "failed", "canceled"]
ActionState = Literal[
    "queued", "approved_pending", "executing", "completed", "failed", "canceled", "rejected", "expired"
]
InboxState = Literal["waiting", "leased", "done", "failed", "coalesced", "auto_acked", "duplicate"]
BackfillStatus = Literal["pending", "active", "paused", "completed", "cancelled", "cost_capped", "error"]
DeliveryState = Literal[
    "queued",
    "sending",
    "deferred",
    "unknown",
    "sent",
    "partially_sent",
    "bounced",
    "rejected",
    "expired",
    "canceled",
]
RecipientState = Literal[
    "queued", "sending", "deferred", "unknown", "sent", "bounced", "rejected", "expired", "canceled"
]
AccountState = Literal["active", "paused", "needs_consent", "removed"]
RequestState = Literal["queued", "leased", "answered", "failed", "expired"]
ModelCallState = Literal["started", "answered", "refused", "failed"]
ProposalState = Literal["open", "accepted", "dismissed"]


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """One state machine: its name, its initial states, and the legal moves.

    At a person's request, ended work may start again: in an initial state, or in one of `resumed`. Later knowledge may
    correct an end to one of `corrected`.
    """

    name: str
    initial: frozenset[str]
    moves: Mapping[str, frozenset[str]]
    resumed: frozenset[str] = frozenset()
    corrected: frozenset[str] = frozenset()

    @property
    def states(self) -> frozenset[str]:
        return frozenset(self.moves)

    @property
    def terminal(self) -> frozenset[str]:
        """The states that are left only at a person's explicit request, or when more is learned."""
        after_end = self.initial | self.resumed | self.corrected
        return frozenset(state for state, targets in self.moves.items() if not targets - after_end)

    def may(self, before: str, after: str) -> bool:
        return after in self.moves.get(before, frozenset())

    def check(self, before: str, after: str) -> None:
        if not self.may(before, after):
            allowed = ", ".join(sorted(self.moves.get(before, frozenset()))) or "nothing: it has ended"
            raise IllegalMove(f"{self.name} is {before} and cannot become {after}; possible from there: {allowed}")


def _moves(**table: str) -> dict[str, frozenset[str]]:
    """The moves from each state. A state that is only reached has none."""
    moves = {state: frozenset(targets.split()) for state, targets in table.items()}
    reached = frozenset[str]().union(*moves.values())
    return {**moves, **dict.fromkeys(reached - moves.keys(), frozenset[str]())}


JOB = Lifecycle(
    "job",
    frozenset({"queued"}),
    _moves(
        queued="running canceled failed",
        running="queued completed failed canceled",
        failed="queued canceled",
        canceled="queued",
    ),
    corrected=frozenset({"canceled"}),
)

ACTION = Lifecycle(
    "action",
    frozenset({"queued", "approved_pending"}),
    _moves(
        queued="executing failed canceled",
        approved_pending="queued rejected expired canceled",
        executing="completed failed canceled",
        failed="executing",
        canceled="executing",
        rejected="approved_pending",
    ),
    resumed=frozenset({"executing"}),
)

INBOX = Lifecycle(
    "inbox message",
    frozenset({"waiting"}),
    _moves(
        waiting="leased coalesced auto_acked duplicate",
        leased="waiting done failed",
    ),
)

BACKFILL = Lifecycle(
    "backfill job",
    frozenset({"pending"}),
    _moves(
        pending="active paused cancelled",
        active="paused cancelled completed error cost_capped",
        paused="pending cancelled",
        cost_capped="pending cancelled",
        error="pending cancelled",
    ),
)

DELIVERY = Lifecycle(
    "delivery",
    frozenset({"queued"}),
    _moves(
        queued="sending partially_sent canceled expired",
        sending="sent partially_sent deferred bounced rejected expired unknown queued",
        deferred="sending partially_sent canceled",
        unknown="sent partially_sent queued canceled",
        sent="partially_sent bounced",
        partially_sent="bounced",
    ),
    corrected=frozenset({"partially_sent", "bounced"}),
)

RECIPIENT = Lifecycle(
    "recipient",
    frozenset({"queued"}),
    _moves(
        queued="sending canceled expired",
        sending="sent deferred bounced rejected expired unknown queued",
        deferred="sending canceled",
        unknown="sent queued canceled",
        sent="bounced",
    ),
    corrected=frozenset({"bounced"}),
)

ACCOUNT = Lifecycle(
    "account",
    frozenset({"active"}),
    _moves(
        active="paused needs_consent removed",
        paused="active needs_consent removed",
        needs_consent="active paused removed",
        removed="active",
    ),
)

REQUEST = Lifecycle(
    "connector request",
    frozenset({"queued"}),
    _moves(
        queued="leased expired",
        leased="queued answered failed expired",
    ),
)

MODEL_CALL = Lifecycle(
    "model call",
    frozenset({"started"}),
    _moves(started="answered refused failed"),
)

PROPOSAL = Lifecycle(
    "proposal",
    frozenset({"open"}),
    _moves(open="accepted dismissed"),
)

LIFECYCLES = (JOB, ACTION, INBOX, BACKFILL, DELIVERY, RECIPIENT, ACCOUNT, REQUEST, MODEL_CALL, PROPOSAL)
