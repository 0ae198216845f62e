"""Counts what one process leases and delivers, for the metrics; figures of all processes are in the database."""

import time
from collections.abc import Sequence
from datetime import datetime

from postroom.core.metrics import (
    OUTBOUND_CHOOSING,
    OUTBOUND_DELIVERED,
    OUTBOUND_LATENCY,
    OUTBOUND_LEASED,
    OUTBOUND_WAIT,
)
from postroom.core.tally import Tally
from postroom.store.outbound.outbound import LeasedMail


class OutboundMeter:
    """Give `stopwatch` to a transaction that leases mail, and tell what came of it."""

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally or Tally()
        self._read_at = 0.0
        self._lap_s = 0.0

    def stopwatch(self) -> float:
        """Seconds on a clock that never jumps. The time between the last two calls is kept."""
        now = time.perf_counter()
        self._lap_s, self._read_at = now - self._read_at, now
        return now

    def leased(self, mails: Sequence[LeasedMail], now: datetime) -> None:
        """A batch was leased; the last lap of the stopwatch is the time that choosing it took."""
        if mails:
            self._tally.observe(OUTBOUND_CHOOSING, self._lap_s)
        for mail in mails:
            self._tally.count(OUTBOUND_LEASED, mail.discipline, mail.sender_lane)
            if mail.is_first:
                wait_s = (now - mail.admitted_at).total_seconds()
                self._tally.observe(OUTBOUND_WAIT, wait_s, mail.discipline, mail.sender_lane)

    def delivered(self, mail: LeasedMail, now: datetime) -> None:
        self._tally.count(OUTBOUND_DELIVERED, mail.discipline, mail.sender_lane)
        latency_s = (now - mail.admitted_at).total_seconds()
        self._tally.observe(OUTBOUND_LATENCY, latency_s, mail.discipline, mail.sender_lane)
