"""Brings waiting mail to where the roll-out of the fair queue wants it: to its tenant's turn, or to the one line."""

from postroom.core.outbound.rollout import Rollout
from postroom.store.engine.database import Script, transaction
from postroom.store.outbound.outbound_turns import rejoining

MOVED_AT_ONCE = 1000


@transaction
def apply_rollout(rollout: Rollout, after: int, most: int = MOVED_AT_ONCE) -> Script[int | None]:
    """Move waiting mail after the place `after` whose tenant has joined or left the fair queue.

    Returns the place from which to go on; None at the end. Mail keeps its order of acceptance, and waits all the time.
    """
    return (yield from rejoining(rollout, after, most))
