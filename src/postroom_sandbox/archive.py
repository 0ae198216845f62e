"""A generated archive: ten years of one person's mail, with messages of each category planted in it.

    mailbox = Mailbox(OWNER.address, Random(1))
    planted = fill_archive(mailbox, seed=1, number=50_000)
    planted[message_id].categories

About two thirds are newsletters, promotions and notifications. The same seed and time give the same bytes. Templates
are in two sets (`archive_templates/`): those that the category packs were tuned on, and those held out.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from zoneinfo import ZoneInfo

from postroom_sandbox.archive_mail import ArchiveWriter, Template, TemplateSet, templates
from postroom_sandbox.mailbox import Mailbox

YEARS = 10
SHARES = {"newsletters": 55, "none": 14, "relationship": 11, "finance": 9, "travel": 5, "health": 4, "sent": 2}
ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Auckland", "Asia/Kolkata")
AT_BORDERS = 0.04
# The share of the mail that Gmail has put into one of its own categories.
SORTED = 0.8
LAST_SECOND = time(23, 59, 59)
PLACES = {
    "": {"CATEGORY_PERSONAL"},
    "auto": {"CATEGORY_UPDATES"},
    "esp": {"CATEGORY_UPDATES"},
    "bulk": {"CATEGORY_PROMOTIONS"},
    "list": {"CATEGORY_FORUMS"},
}


@dataclass(frozen=True)
class Planted:
    """The truth about a message: its categories, those it may be in or not, and the template it was made from."""

    categories: frozenset[str]
    unclear: frozenset[str]
    template: str


@dataclass(frozen=True)
class ArchivedMail:
    raw: bytes
    labels: frozenset[str]
    received_at: datetime
    planted: Planted


def archive_mail(
    seed: int, number: int, newest: datetime, sources: Collection[TemplateSet] = ("tuned", "held_out")
) -> Iterator[ArchivedMail]:
    """The mail of the `YEARS` before `newest`, oldest first."""
    rng = Random(f"{seed} {number}")  # noqa: S311
    writer = ArchiveWriter(rng)
    by_kind: dict[str, list[Template]] = {kind: [] for kind in SHARES}
    for template in (each for source in sources for each in templates(source)):
        by_kind[template.kind].append(template)
    by_kind["sent"] = [template for template in by_kind["relationship"] if template.way == ""]
    kinds = [kind for kind in SHARES if by_kind[kind]]
    for at in _times(rng, number, newest):
        (kind,) = rng.choices(kinds, [SHARES[each] for each in kinds])
        template = rng.choice(by_kind[kind])
        if kind == "sent":
            nothing = Planted(frozenset(), frozenset(), template.name)
            yield ArchivedMail(writer.sent(template, at), frozenset({"SENT"}), at, nothing)
        else:
            planted = Planted(template.categories, template.unclear, template.name)
            yield ArchivedMail(writer.write(template, at), _labels(rng, template, at, newest), at, planted)


def fill_archive(
    mailbox: Mailbox,
    seed: int,
    number: int,
    newest: datetime | None = None,
    sources: Collection[TemplateSet] = ("tuned", "held_out"),
) -> dict[str, Planted]:
    """Fill the mailbox, and return the truth about every message by its id."""
    planted: dict[str, Planted] = {}
    for mail in archive_mail(seed, number, newest or mailbox.clock(), sources):
        message = mailbox.deliver(mail.raw, mail.labels, mail.received_at)
        planted[message.id] = mail.planted
    return planted


def oldest_day(newest: datetime) -> date:
    """The first day of an archive that ends at this time, in UTC."""
    return (newest.astimezone(UTC) - timedelta(days=365 * YEARS)).date()


def _times(rng: Random, number: int, newest: datetime) -> list[datetime]:
    """When the messages were received, oldest first, each in some zone.

    Some are in the first or the last second of a day in their zone, on both end days of the archive too.
    """
    newest = newest.astimezone(UTC).replace(microsecond=0)
    first = oldest_day(newest)
    begin = datetime.combine(first, time(), UTC)
    days, seconds = (newest.date() - first).days, int((newest - begin).total_seconds())
    zones = [ZoneInfo(name) for name in ZONES]
    ends = [begin, datetime.combine(first, LAST_SECOND, UTC), datetime.combine(newest.date(), time(), UTC), newest]
    times = ends[:number]
    while len(times) < number:
        zone = rng.choice(zones)
        at = begin + timedelta(seconds=rng.randrange(seconds))
        if rng.random() < AT_BORDERS:
            day = first + timedelta(days=rng.randrange(days))
            at = datetime.combine(day, rng.choice((time(), LAST_SECOND)), zone)
        if begin <= at <= newest:
            times.append(at.astimezone(zone))
    return sorted(times)


def _labels(rng: Random, template: Template, at: datetime, newest: datetime) -> frozenset[str]:
    """The labels of a message as its owner left it: recent mail is in the inbox, older mail mostly archived."""
    labels = set(PLACES[template.way] if rng.random() < SORTED else ())
    recent = newest - at < timedelta(days=30)
    if recent or rng.random() < 0.4:
        labels.add("INBOX")
    if recent and rng.random() < 0.5:
        labels.add("UNREAD")
    return frozenset(labels)
