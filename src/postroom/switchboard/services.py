"""What the switchboard's doors, MCP and HTTP, lead to."""

from dataclasses import dataclass

from postroom.core.queues import Queues
from postroom.core.tally import Tally
from postroom.store.clock import Clock
from postroom.store.database import Database
from postroom.switchboard.buffer import Buffer
from postroom.switchboard.intake import Intake
from postroom.switchboard.token_check import TokenCheck


@dataclass(frozen=True, slots=True)
class Services:
    """The parts behind the doors, put together once."""

    intake: Intake
    buffer: Buffer
    database: Database
    queues: Queues
    token_check: TokenCheck
    tally: Tally
    clock: Clock
