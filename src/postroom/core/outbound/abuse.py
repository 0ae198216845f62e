"""The abuse score of a sender, from the counts of a day, and the throttle that follows from it.

    sign                                                        points
    more than 10 % of what ended has bounced                    30
    more than 5 % of what ended was rejected                    20
    more than 5 times the average of a day was accepted         25     after a week of history
    a sender younger than 7 days had more than 100 accepted     40

A sign beyond three times its limit counts double, so that one sign alone is enough if it is plain. The score is the
sum, at most 100. Fewer than 20 messages prove nothing: shares are taken of at least 20 that have ended, and an average
below 20 a day counts as 20, so that a rare sender may once write to a hundred people. The number alone throttles no
sender within the usual daily limit of 300. Every recipient counts as a message.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal, NamedTuple

from postroom.core.outbound.priority import Throttle, is_new
from postroom.core.views import Internal

LEAST_MESSAGES = 20
WINDOW = timedelta(days=1)
WEEK_DAYS = 7
HISTORY_DAYS = 28
HIGHEST_SCORE = 100
PLAIN = 3
FIRST_THROTTLE = timedelta(hours=1)

Verdict = Literal["none", "begin", "keep", "end"]


@dataclass(frozen=True, slots=True)
class Activity:
    """The counts of one sender: of the last day, and of the days before it as far as they are known."""

    created_at: datetime
    accepted: int = 0
    delivered: int = 0
    bounced: int = 0
    rejected: int = 0
    history: int = 0
    """Messages accepted in `history_days` before the last day."""
    history_days: int = 0

    @property
    def ended(self) -> int:
        return self.delivered + self.bounced + self.rejected


class Sign(NamedTuple):
    """One sign of abuse, in words, and its points. A share that has failed is no sign of volume."""

    what: str
    points: int
    is_failure: Internal[bool] = False


class Score(NamedTuple):
    """The points of all signs together, and the signs."""

    points: int
    signs: tuple[Sign, ...] = ()

    @property
    def is_for_failures(self) -> bool:
        """Whether mail that failed is among the signs, and not its number alone."""
        return any(sign.is_failure for sign in self.signs)

    @property
    def reason(self) -> str:
        return "; ".join(sign.what for sign in self.signs)


def abuse_score(activity: Activity, now: datetime) -> Score:
    """Score a sender by the counts of a day."""
    found = [sign for sign in _signs(activity, now) if sign.points]
    return Score(min(sum(sign.points for sign in found), HIGHEST_SCORE), tuple(found))


def _signs(activity: Activity, now: datetime) -> list[Sign]:
    signs: list[Sign] = []
    accepted, ended = activity.accepted, activity.ended
    if ended >= LEAST_MESSAGES:
        bounced, rejected = activity.bounced, activity.rejected
        signs.append(Sign(f"{bounced} of {ended} bounced", _points(30, bounced, Fraction(ended, 10)), True))
        signs.append(Sign(f"{rejected} of {ended} were rejected", _points(20, rejected, Fraction(ended, 20)), True))
    if activity.history_days >= WEEK_DAYS:
        usual = max(Fraction(activity.history, activity.history_days), Fraction(LEAST_MESSAGES))
        average = activity.history / activity.history_days
        signs.append(Sign(f"{accepted} in a day, {average:.1f} on average", _points(25, accepted, 5 * usual)))
    if is_new(activity.created_at, now):
        signs.append(Sign(f"{accepted} in a day from a new sender", _points(40, accepted, Fraction(100))))
    return signs


def _points(points: int, count: int, limit: Fraction) -> int:
    """The points of a sign: none up to its limit, twice as many beyond three times the limit."""
    if count <= limit:
        return 0
    return 2 * points if count > PLAIN * limit else points


@dataclass(frozen=True, slots=True)
class AbusePolicy:
    """From which score on senders are throttled, and for how long at most."""

    threshold: int = 50
    longest: timedelta = timedelta(days=1)

    def throttle_time(self, score: int) -> timedelta:
        """1 h · 2^⌊score/20⌋, at most `longest`."""
        return min(FIRST_THROTTLE * 2 ** (score // 20), self.longest)

    def throttle(self, score: Score, now: datetime) -> Throttle:
        return Throttle(now + self.throttle_time(score.points), score.reason)

    def verdict(self, score: int, throttle: Throttle | None, now: datetime) -> Verdict:
        """Decide about a sender's throttle: it ends when its time is over and the score has fallen."""
        if throttle is None:
            return "begin" if score >= self.threshold else "none"
        return "keep" if throttle.is_in_force(now) or score >= self.threshold else "end"
