"""Charts over time: their hours and days are those of the reader, also where summer time begins and ends."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from postroom.interfaces.dashboard.charts import Series, legend, lines, stacked_bars
from postroom.interfaces.dashboard.tiers import with_gaps

BERLIN = ZoneInfo("Europe/Berlin")


def hours(first: datetime, count: int) -> list[datetime]:
    return [first + timedelta(hours=index) for index in range(count)]


def titles(drawn: str) -> list[str]:
    return [each.partition(":  ")[0] for each in re.findall(r"<title>(.*?): mail 1</title>", drawn)]


def axis(drawn: str) -> list[str]:
    return re.findall(r'<text x="[\d.]+" y="164" text-anchor="\w+">(.*?)</text>', drawn)


def test_the_hour_that_the_end_of_summer_time_repeats_is_drawn_twice() -> None:
    moments = hours(datetime(2026, 10, 24, 23, tzinfo=UTC), 4)
    drawn = stacked_bars(moments, [Series("mail", [1] * 4, "acc")], zone=BERLIN)
    assert titles(drawn) == [
        "25 Oct, 01:00 CEST", "25 Oct, 02:00 CEST", "25 Oct, 02:00 CET", "25 Oct, 03:00 CET",
    ]  # fmt: skip
    assert axis(drawn) == ["01:00", "02:00", "02:00", "03:00"]


def test_the_hour_that_summer_time_skips_is_not_drawn() -> None:
    moments = hours(datetime(2026, 3, 28, 23, tzinfo=UTC), 4)
    assert axis(lines(moments, [Series("mail", [1] * 4, "acc")], zone=BERLIN)) == ["00:00", "01:00", "03:00", "04:00"]


def test_longer_times_are_drawn_as_days_and_months_in_english() -> None:
    days = [datetime(2026, 2, 27, 23, tzinfo=UTC) + timedelta(days=index) for index in range(7)]
    series = [Series("mail", [1] * 7, "acc")]
    assert axis(stacked_bars(days, series, zone=BERLIN)) == ["28 Feb", "2 Mar", "4 Mar", "6 Mar"]
    assert axis(stacked_bars(days, series, zone=UTC))[0] == "27 Feb"
    assert axis(lines([days[0], days[0] + timedelta(days=400)], [Series("mail", [1, 2], "acc")])) == [
        "Feb 2026", "Apr 2027",
    ]  # fmt: skip


def test_a_span_without_a_value_is_a_gap_and_a_zero_is_a_zero() -> None:
    moments = hours(datetime(2026, 3, 4, tzinfo=UTC), 6)
    drawn = lines(moments, [Series("waiting", [3, 0, None, None, 5, None], "acc")])
    (path,) = re.findall(r'<path class="ln k-acc" d="(.*?)"', drawn)
    assert [len(re.findall("[ML]", piece)) for piece in re.findall("M[^M]*", path)] == [2, 1]
    assert re.findall(r'<rect class="f-gap".*?<title>(.*?)</title>', drawn) == [
        "4 Mar, 02:00 UTC to 4 Mar, 03:00 UTC: not running: nothing recorded",
        "4 Mar, 05:00 UTC: not running: nothing recorded",
    ]
    assert 'aria-label="waiting: from 0 to 5, last 5, nothing recorded in 3 of 6"' in drawn


def test_a_legend_names_the_gaps_if_there_are_any() -> None:
    assert "not running" not in legend([Series("mail", [0, 1], "acc")])
    assert "not running" in legend([Series("mail", [0, 1, None], "acc"), Series("old", [0, 0, None], "dim")])
    bars = stacked_bars(hours(datetime(2026, 3, 4, tzinfo=UTC), 2), [Series("mail", [None, 2], "acc")], gap="no data")
    assert bars.count("f-gap") == 1
    assert "no data" in bars
    assert with_gaps([Series("mail", [0, 0, 2], "acc")], [False, True, False])[0].values == [None, 0, 2]
