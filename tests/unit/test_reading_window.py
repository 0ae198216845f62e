"""How far back a connector looks: some days, to where it was, or to where its owner wants mail acted on."""

from datetime import UTC, datetime, timedelta

import pytest

from postroom.mailboxes.following.window import window_start

NOW = datetime(2026, 11, 19, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("known_until", "acts_from", "days"),
    [
        (None, None, 7),
        (None, 0, 7),
        (None, 3, 7),
        (None, 9, 9),
        (None, 90, 90),
        (None, 91, 7),
        (None, 9_000, 7),
        (0, 9, 7),
        (20, 9, 21),
        (400, None, 90),
    ],
)
def test_the_window_begins_where_mail_was_not_read_yet(
    known_until: int | None, acts_from: int | None, days: int
) -> None:
    def ago(days: int | None) -> datetime | None:
        return None if days is None else NOW - days * DAY

    assert window_start(NOW, ago(known_until), ago(acts_from)) == NOW - days * DAY
