"""The settings of the fair queue and of the detection of abuse, also under the names that others know them by."""

from datetime import timedelta
from pathlib import Path

import pytest

from postroom.core.errors import SettingsError
from postroom.core.outbound.abuse import AbusePolicy
from postroom.core.outbound.limits import DailyLimits
from postroom.core.outbound.rollout import Rollout
from postroom.settings.outbound import OutboundSettings
from postroom.settings.reading import ALIASES, known_settings, load_settings, shown


def load(folder: Path, environ: dict[str, str]) -> OutboundSettings:
    return load_settings({"data_dir": folder}, environ=environ).outbound


def test_by_default_everybody_uses_the_fair_queue_and_abuse_is_throttled(tmp_path: Path) -> None:
    found = load(tmp_path, {})
    assert found.rollout == Rollout("all", 0.1)
    assert found.limits == DailyLimits(300, None)
    assert found.abuse_policy == AbusePolicy(50, timedelta(days=1))
    assert (found.abuse_detection, found.max_queue, found.scoring_period) == ("on", 100, timedelta(minutes=5))
    assert found.priority_multipliers == (2.0, 1.0, 0.5, 0.1)


def test_the_names_of_the_environment_that_others_use_are_accepted(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        {
            "SMTP_FAIR_QUEUE_ENABLED": "true",
            "SMTP_ABUSE_DETECTION_ENABLED": "observe",
            "SMTP_ABUSE_THRESHOLD": "60",
            "SMTP_MAX_THROTTLE_DURATION": "3600000",
            "SMTP_PRIORITY_MULTIPLIERS": "4,2,1,0.25",
            "SMTP_MAX_QUEUE": "20",
        },
    )
    assert (found.fair_queue, found.abuse_detection, found.max_queue) == ("all", "observe", 20)
    assert found.abuse_policy == AbusePolicy(60, timedelta(hours=1))
    assert found.priority_multipliers == (4.0, 2.0, 1.0, 0.25)
    assert set(ALIASES.values()) <= {setting.key for setting in known_settings()}


def test_a_process_delivers_no_more_at_once_than_all_of_them_may(tmp_path: Path) -> None:
    assert load(tmp_path, {}).slots == 50
    assert load(tmp_path, {"SMTP_MAX_QUEUE": "5"}).slots == 5


def test_a_name_of_our_own_comes_before_an_alias(tmp_path: Path) -> None:
    assert load(tmp_path, {"SMTP_MAX_QUEUE": "20", "POSTROOM_OUTBOUND_MAX_QUEUE": "30"}).max_queue == 30


@pytest.mark.parametrize(
    ("written", "stage", "detection"),
    [("true", "all", "on"), ("False", "off", "off"), ("1", "all", "on"), ("0", "off", "off")],
)
def test_a_switch_takes_true_and_false(tmp_path: Path, written: str, stage: str, detection: str) -> None:
    names = ("SMTP_FAIR_QUEUE_ENABLED", "SMTP_ABUSE_DETECTION_ENABLED")
    found = load(tmp_path, dict.fromkeys(names, written))
    assert (found.fair_queue, found.abuse_detection) == (stage, detection)
    (tmp_path / "postroom.toml").write_text("[outbound]\nfair_queue = false\nabuse_detection = true\n")
    assert (load(tmp_path, {}).fair_queue, load(tmp_path, {}).abuse_detection) == ("off", "on")


def test_a_share_of_the_tenants_can_be_chosen(tmp_path: Path) -> None:
    environ = {"SMTP_FAIR_QUEUE_ENABLED": "share", "POSTROOM_OUTBOUND_FAIR_QUEUE_SHARE": "0.5"}
    assert load(tmp_path, environ).rollout == Rollout("share", 0.5)


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"SMTP_FAIR_QUEUE_ENABLED": "maybe"}, "use one of off, measure, share, all"),
        ({"SMTP_ABUSE_DETECTION_ENABLED": "yes"}, "use one of off, observe, on"),
        ({"SMTP_ABUSE_THRESHOLD": "0"}, "use a whole number from 1 to 100"),
        ({"SMTP_PRIORITY_MULTIPLIERS": "2,1"}, "four numbers above 0"),
        ({"SMTP_PRIORITY_MULTIPLIERS": "2,1,0,-1"}, "four numbers above 0"),
        ({"SMTP_PRIORITY_MULTIPLIERS": "2,1,nan,1"}, "four numbers above 0"),
        ({"SMTP_PRIORITY_MULTIPLIERS": "2,1,much,1"}, "use numbers, separated by commas"),
        ({"SMTP_MAX_QUEUE": "0"}, "use a whole number from 1"),
        ({"POSTROOM_OUTBOUND_DOMAIN_DAILY_LIMIT": "0"}, "outbound.domain_daily_limit: '0'"),
        ({"POSTROOM_OUTBOUND_NOTICE_TO": "a@x.example"}, "since outbound.notice_to is set"),
        (
            {"POSTROOM_OUTBOUND_NOTICE_TO": "a@x.example\r\nBcc: b@x.example"},
            "an address such as postmaster@example.com",
        ),
        ({"POSTROOM_OUTBOUND_NOTICE_WEBHOOK_URL": "https://x.example/"}, "since outbound.notice_webhook_url is set"),
        (
            {"POSTROOM_OUTBOUND_NOTICE_WEBHOOK_URL": "ftp://x.example/"},
            "an address such as https://example.com/notices",
        ),
        ({"POSTROOM_OUTBOUND_NOTICE_WEBHOOK_SECRET": "short"}, "a secret of 16 characters or more"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(tmp_path: Path, environ: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, environ)
    assert problem in str(refused.value)
    assert "short" not in str(refused.value)


def test_the_secret_of_the_webhook_is_never_shown(tmp_path: Path) -> None:
    environ = {
        "POSTROOM_OUTBOUND_NOTICE_WEBHOOK_URL": "https://x.example/",
        "POSTROOM_OUTBOUND_NOTICE_WEBHOOK_SECRET": "canary" * 4,
    }
    settings = load_settings({"data_dir": tmp_path}, environ=environ)
    assert "canary" not in f"{shown(settings)} {settings!r}"
