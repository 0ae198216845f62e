"""One frozen settings object from command line, environment, file and defaults; nothing invalid passes silently."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from postroom.core.errors import SettingsError
from postroom.settings.reading import (
    Settings,
    known_settings,
    load_settings,
    secrets_of,
    shown,
    trace_settings,
)
from postroom.vault.masking import masked_urls

DSN = "postgresql://ada:kanarienvogel@db.example:5433/mail?sslmode=require"


def load(tmp_path: Path, file: str | None = None, **environ: str) -> Settings:
    if file is not None:
        (tmp_path / "postroom.toml").write_text(file)
    return load_settings(environ={"HOME": str(tmp_path), **environ}, cwd=tmp_path)


def refusal(tmp_path: Path, file: str | None = None, **environ: str) -> str:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, file, **environ)
    return str(raised.value)


def test_without_anything_said_the_defaults_hold(tmp_path: Path):
    settings, origins = trace_settings(environ={"HOME": str(tmp_path)}, cwd=tmp_path)
    assert settings.data_dir == tmp_path / ".local/share/postroom"
    assert settings.database_url is None
    assert (settings.worker.concurrency, settings.jobs.lease_s, settings.web.port) == (32, 60.0, 8025)
    assert set(origins.values()) == {"default"}


def test_command_line_beats_environment_beats_file_beats_default(tmp_path: Path):
    (tmp_path / "postroom.toml").write_text("[worker]\nconcurrency = 1\nprefetch_ms = 2\n[web]\nport = 3\n")
    environ = {"HOME": str(tmp_path), "POSTROOM_WORKER_CONCURRENCY": "4", "POSTROOM_WORKER_PREFETCH_MS": "5"}
    settings, origins = trace_settings({"worker.concurrency": 6, "web.host": None}, environ=environ, cwd=tmp_path)
    assert (settings.worker.concurrency, settings.worker.prefetch_ms, settings.web.port) == (6, 5, 3)
    assert settings.web.host == "127.0.0.1"
    assert origins["worker.concurrency"] == "command line"
    assert origins["worker.prefetch_ms"] == "POSTROOM_WORKER_PREFETCH_MS"
    assert origins["web.port"] == str(tmp_path / "postroom.toml")
    assert origins["web.host"] == "default"


def test_every_setting_can_be_given_in_the_environment_under_its_name(tmp_path: Path):
    assert load(tmp_path, POSTROOM_JOBS_KEEP_FAILED_DAYS="3").jobs.keep_failed_days == 3
    assert load(tmp_path, POSTROOM_ALLOW_UNSAFE_DURABILITY="true").allow_unsafe_durability is True
    assert load(tmp_path, POSTROOM_WEB_ALLOWED_HOSTS="mail.example, localhost").web.allowed_hosts == (
        "mail.example",
        "localhost",
    )
    assert len({setting.env for setting in known_settings()}) == len(known_settings())


def test_an_empty_variable_counts_as_not_set(tmp_path: Path):
    assert load(tmp_path, POSTROOM_DATABASE_URL="").database_url is None


def test_the_file_in_the_data_folder_comes_before_the_one_in_the_current_folder(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postroom.toml").write_text("[web]\nport = 1")
    assert load(tmp_path, "[web]\nport = 2", POSTROOM_DATA_DIR="data").web.port == 1
    assert load(tmp_path, "[web]\nport = 2").web.port == 2


def test_the_file_can_be_named_and_must_then_exist(tmp_path: Path):
    (tmp_path / "other.toml").write_text("[web]\nport = 7")
    assert load(tmp_path, "[web]\nport = 2", POSTROOM_CONFIG="other.toml").web.port == 7
    assert "nowhere.toml" in refusal(tmp_path, POSTROOM_CONFIG="nowhere.toml")


def test_a_data_folder_named_in_a_file_is_relative_to_that_file(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "p.toml").write_text('data_dir = "mail"')
    assert load(tmp_path, POSTROOM_CONFIG="etc/p.toml").data_dir == tmp_path / "etc" / "mail"
    assert load(tmp_path, POSTROOM_CONFIG="etc/p.toml", POSTROOM_DATA_DIR="x").data_dir == tmp_path / "x"


@pytest.mark.parametrize(
    ("file", "environ", "suggested"),
    [
        ("[worker]\nconcurency = 3", {}, "worker.concurrency"),
        ("prefetch_ms = 3", {}, "worker.prefetch_ms"),
        ("[wokrer]\nconcurrency = 3", {}, "worker.concurrency"),
        (None, {"POSTROOM_WORKER_CONCURENCY": "3"}, "POSTROOM_WORKER_CONCURRENCY"),
        (None, {"POSTROOM_DATADIR": "x"}, "POSTROOM_DATA_DIR"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_one(
    tmp_path: Path, file: str | None, environ: dict[str, str], suggested: str
):
    assert f"did you mean {suggested}?" in refusal(tmp_path, file, **environ)


def test_a_name_like_no_other_is_refused_with_where_to_look(tmp_path: Path):
    assert "`postroom settings`" in refusal(tmp_path, "zzz = 1")
    with pytest.raises(SettingsError, match=r"did you mean web\.port"):
        load_settings({"web.prt": 1}, environ={}, cwd=tmp_path)


def test_a_section_written_as_a_value_is_explained(tmp_path: Path):
    assert "write [log]" in refusal(tmp_path, 'log = "debug"')


def test_names_of_the_test_suite_are_no_settings(tmp_path: Path):
    load(tmp_path, POSTROOM_TEST_SCALE="soak", POSTROOM_SAMPLE_MAIL="x", PATH="/bin")


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("worker.concurrency", "0", "a whole number from 1 to 1000"),
        ("worker.concurrency", "many", "a whole number from 1 to 1000"),
        ("jobs.lease_s", "0", "a number above 0"),
        ("jobs.lease_s", "nan", "a number above 0"),
        ("jobs.lease_s", "inf", "a number above 0"),
        ("jobs.heartbeat_s", "31", "at most half of jobs.lease_s, which is 60"),
        ("log.level", "loud", "one of debug, info, warning, error"),
        ("web.port", "65536", "a whole number from 0 to 65535"),
        ("web.allowed_hosts", ",", "names, at least one"),
        ("allow_unsafe_durability", "perhaps", "true or false"),
        ("gmail.base_url", "ftp://x", "an address such as https://gmail.googleapis.com"),
        ("gmail.snooze_label", "TRASH", "a label of your own"),
        ("account.email", "ada", "an address such as ada@example.com"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_the_value_and_what_is_allowed(
    tmp_path: Path, name: str, value: str, allowed: str
):
    env = "POSTROOM_" + name.replace(".", "_").upper()
    message = refusal(tmp_path, **{env: value})
    assert message.startswith(f"{name}: {value!r} (from {env}) is refused; use {allowed}")


def test_a_truth_value_is_not_number(tmp_path: Path):
    assert "worker.concurrency: True" in refusal(tmp_path, "[worker]\nconcurrency = true")


def test_a_default_that_no_longer_fits_is_refused_too(tmp_path: Path):
    assert "jobs.heartbeat_s: 20.0 (from default)" in refusal(tmp_path, POSTROOM_JOBS_LEASE_S="10")


def test_all_wrong_values_are_named_at_once(tmp_path: Path):
    message = refusal(tmp_path, POSTROOM_WEB_PORT="-1", POSTROOM_LOG_LEVEL="loud")
    assert "web.port" in message
    assert "log.level" in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"= 1", b"[web\n", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_refused_by_name(tmp_path: Path, content: bytes):
    (tmp_path / "postroom.toml").write_bytes(content)
    assert str(tmp_path / "postroom.toml") in refusal(tmp_path)


@pytest.mark.parametrize("dsn", [DSN, "postgres://h/d"])
def test_the_database_is_postgres_or_none(tmp_path: Path, dsn: str):
    assert load(tmp_path, POSTROOM_DATABASE_URL=dsn).database_url == SecretStr(dsn)


def test_a_refused_database_address_is_not_repeated(tmp_path: Path):
    message = refusal(tmp_path, POSTROOM_DATABASE_URL="mysql://ada:kanarienvogel@h/d")
    assert "kanarienvogel" not in message
    assert "postgresql://user:password@host/database" in message
    assert "kanarienvogel" not in refusal(tmp_path, POSTROOM_GMAIL_BASE_URL="https://ada:kanarienvogel@h")


def test_no_display_of_the_settings_holds_a_secret(tmp_path: Path):
    settings = load(tmp_path, POSTROOM_DATABASE_URL=DSN, POSTROOM_GMAIL_TOKEN="kanarienvogel")
    for display in (repr(settings), str(settings), settings.model_dump_json(), str(shown(settings))):
        assert "kanarienvogel" not in display
    assert shown(settings)["database_url"] == "postgresql://ada:***@db.example:5433/mail?sslmode=require"
    assert {"kanarienvogel", DSN} <= set(secrets_of(settings))


def test_of_a_webhook_only_the_host_is_shown_since_its_path_lets_in_whoever_knows_it(tmp_path: Path):
    hook = "https://hooks.example/services/T01/B02/kanarienvogel"
    settings = load(tmp_path, POSTROOM_APPROVALS_WEBHOOK_URL=hook, POSTROOM_APPROVALS_WEBHOOK_SECRET="x" * 40)
    assert shown(settings)["approvals.webhook_url"] == "https://hooks.example/***"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:kanari@envogel@h/d",
        "postgresql://ada:kanari/envogel@h/d",
        "postgresql://ada:kanari:envogel@h/d?a=b",
        "postgresql://:kanarienvogel@h",
        "postgresql://h/d?user=ada&password=kanarienvogel&x=1",
        "postgresql://h/d?sslpassword=kanarienvogel",
    ],
)
def test_a_password_in_a_url_is_masked_however_it_is_written(url: str):
    masked = masked_urls(f"connect to {url} now")
    assert "kanari" not in masked
    assert "envogel" not in masked
    assert masked.endswith(" now")


def test_settings_cannot_be_changed(tmp_path: Path):
    settings = load(tmp_path)
    with pytest.raises(ValidationError, match="frozen"):
        settings.web.port = 1  # type: ignore[misc]


def test_importing_the_settings_imports_nothing_heavy():
    script = (
        "import sys, postroom.settings.reading; "
        "print(*{'starlette', 'asyncpg', 'apsw', 'structlog', 'rich'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
