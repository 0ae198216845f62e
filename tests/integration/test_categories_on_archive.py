"""The category packs on a generated archive: the provider's search and the check together, on held-out templates."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from postroom.core.mail.categories import CATEGORIES, categories_of, queries_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from postroom_sandbox.archive import Planted, archive_mail, fill_archive, oldest_day
from postroom_sandbox.correspondents import OWNER
from postroom_sandbox.mailbox import Mailbox
from support.category_figures import figures_of
from support.scale import scale

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
KNOWN = Known.of([OWNER.address])
MESSAGES = scale(4_000, 50_000)
RECALL, PRECISION = 0.95, 0.9


@pytest.fixture(scope="module")
def archive() -> tuple[Mailbox, Mapping[str, Planted]]:
    mailbox = Mailbox(OWNER.address, Random(5), clock=lambda: NOW)
    return mailbox, fill_archive(mailbox, 5, MESSAGES, sources=("held_out",))


def found(mailbox: Mailbox, category: str) -> set[str]:
    """The incoming messages that the searches list and the check accepts."""
    listed = {
        message.id for query in queries_of([CATEGORIES[category]], OWNER.address) for message in mailbox.search(query)
    }
    incoming = (message for message in map(mailbox.get, listed) if "SENT" not in message.labels)
    facts = ((message.id, IngestionFacts.of(parse_message(message.mail.raw))) for message in incoming)
    return {id for id, each in facts if category in categories_of(each, KNOWN)}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_pack_finds_its_planted_messages_and_little_else(
    archive: tuple[Mailbox, Mapping[str, Planted]], category: str
) -> None:
    mailbox, planted = archive
    figures = figures_of(category, found(mailbox, category), planted)
    print(f"\n{category}: {figures}")
    assert figures.found
    assert figures.recall >= RECALL
    assert figures.precision >= PRECISION


@pytest.mark.parametrize("category", ["finance", "health", "relationship", "travel"])
def test_newsletters_stay_out(archive: tuple[Mailbox, Mapping[str, Planted]], category: str) -> None:
    mailbox, planted = archive
    newsletters = {id for id, each in planted.items() if each.categories == frozenset({"newsletters"})}
    assert len(found(mailbox, category) & newsletters) <= len(newsletters) * 0.002


def test_an_archive_is_the_same_for_the_same_seed() -> None:
    first, again, other = (list(archive_mail(seed, 50, NOW)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_an_archive_has_mail_on_both_end_days_and_at_day_borders_in_several_zones() -> None:
    times = [mail.received_at for mail in archive_mail(1, 2_000, NOW)]
    assert times == sorted(times)
    assert {times[0].date(), times[-1].date()} == {oldest_day(NOW), NOW.date()}
    borders = [at for at in times if at.hour == at.minute == at.second == 0 or (at + timedelta(seconds=1)).hour == 0]
    assert len({at.utcoffset() for at in borders}) > 3


def test_an_archive_is_mostly_newsletters_and_notifications_and_has_every_category() -> None:
    kinds = [mail.planted.categories for mail in archive_mail(1, 2_000, NOW)]
    assert 0.6 < sum(not each or each == frozenset({"newsletters"}) for each in kinds) / len(kinds) < 0.75
    assert set().union(*kinds) == set(CATEGORIES)
