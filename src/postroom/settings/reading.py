"""All settings of Postroom as one frozen object, and how they are read.

Highest first: explicit overrides (command line), environment `POSTROOM_*`, the file `postroom.toml`, defaults.
A section of the file is a part of the name: `[worker] concurrency = 32` is `POSTROOM_WORKER_CONCURRENCY=32`.
Nothing is guessed: the error for an unknown name suggests the nearest known one; for a wrong value, what is allowed.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo

from postroom.core.errors import BadInput, SettingsError
from postroom.core.suggestions import did_you_mean
from postroom.settings.approvals import ApprovalsSettings, DiscordSettings
from postroom.settings.checks import form
from postroom.settings.delivery import DeliverySettings
from postroom.settings.locations import DEFAULT_DATA_DIR, expand_home, find_locations
from postroom.settings.mailboxes import (
    AccountSettings,
    BackfillSettings,
    ConnectorSettings,
    GmailSettings,
    GoogleSettings,
    ImapSettings,
    MicrosoftSettings,
)
from postroom.settings.outbound import OutboundSettings
from postroom.settings.queues import QueueTables, RouteTables, queues_of
from postroom.settings.sections import (
    InboxSettings,
    JobsSettings,
    LogSettings,
    ModelSettings,
    RedisSettings,
    RetentionSettings,
    SafetySettings,
    Section,
    TelemetrySettings,
    Whole,
    WorkerSettings,
    Zone,
)
from postroom.settings.submission import SubmissionSettings
from postroom.settings.web import WebSettings
from postroom.vault.keys import read_key
from postroom.vault.masking import HIDDEN, masked_path, masked_urls, passwords_in

PREFIX = "POSTROOM_"

# Other names under which the environment may give a setting: those of connectors of all kinds, and of the fair queue.
ALIASES = {
    "CONNECTOR_BACKFILL_POLL_INTERVAL_S": "backfill.poll_interval_s",
    "CONNECTOR_BACKFILL_PROGRESS_INTERVAL": "backfill.progress_interval",
    "SMTP_FAIR_QUEUE_ENABLED": "outbound.fair_queue",
    "SMTP_MAX_QUEUE": "outbound.max_queue",
    "SMTP_PRIORITY_MULTIPLIERS": "outbound.priority_multipliers",
    "SMTP_ABUSE_DETECTION_ENABLED": "outbound.abuse_detection",
    "SMTP_ABUSE_THRESHOLD": "outbound.abuse_threshold",
    "SMTP_MAX_THROTTLE_DURATION": "outbound.max_throttle_ms",
}
# Names with our prefix that are not settings: the path of the file, and what only the tests read.
NOT_SETTINGS = re.compile(r"POSTROOM_(CONFIG|SAMPLE_MAIL|TEST_\w+)")


class Settings(Section):
    data_dir: Path = Field(
        DEFAULT_DATA_DIR, description="The folder in which Postroom stores everything; created when missing."
    )
    database_url: SecretStr | None = Field(
        None, description="The PostgreSQL database, `postgresql://…`; without it, a SQLite file in the data folder."
    )
    allow_unsafe_durability: bool = Field(
        False, description="Start on a PostgreSQL that may lose what it acknowledged (`fsync` off and the like)."
    )
    secret_key: SecretStr | None = Field(
        None,
        description="The key that encrypts the accounts' secrets: 32 random bytes in base64, or several keys separated "
        "by commas, of which the first encrypts. Without it, keys are kept in a file in the data folder.",
    )
    time_zone: Zone = Field(
        "UTC",
        description="The time zone of your day: when the model's budget and the limits on hiding start again. A name "
        "such as `Europe/Berlin`.",
    )
    disk_reserve_mib: Whole = Field(
        512, ge=0, description="Free disk space, in MiB, below which no new mail is accepted; other work continues."
    )
    queues: QueueTables = Field(
        {}, description="Queues by name: changes to the built-in `email` and `gateway`, and queues of your own."
    )
    routes: RouteTables = Field(
        (), description="Sources whose events go to another queue than the usual one; the first match counts."
    )
    log: LogSettings = LogSettings.model_validate({})
    web: WebSettings = WebSettings.model_validate({})
    worker: WorkerSettings = WorkerSettings.model_validate({})
    jobs: JobsSettings = JobsSettings.model_validate({})
    gmail: GmailSettings = GmailSettings.model_validate({})
    imap: ImapSettings = ImapSettings.model_validate({})
    google: GoogleSettings = GoogleSettings.model_validate({})
    microsoft: MicrosoftSettings = MicrosoftSettings.model_validate({})
    model: ModelSettings = ModelSettings.model_validate({})
    safety: SafetySettings = SafetySettings.model_validate({})
    approvals: ApprovalsSettings = ApprovalsSettings.model_validate({})
    discord: DiscordSettings = DiscordSettings.model_validate({})
    outbound: OutboundSettings = OutboundSettings.model_validate({})
    delivery: DeliverySettings = DeliverySettings.model_validate({})
    submission: SubmissionSettings = SubmissionSettings.model_validate({})
    inbox: InboxSettings = InboxSettings.model_validate({})
    account: AccountSettings = AccountSettings.model_validate({})
    connector: ConnectorSettings = ConnectorSettings.model_validate({})
    backfill: BackfillSettings = BackfillSettings.model_validate({})
    retention: RetentionSettings = RetentionSettings.model_validate({})
    redis: RedisSettings = RedisSettings.model_validate({})
    telemetry: TelemetrySettings = TelemetrySettings.model_validate({})

    @field_validator("secret_key")
    @classmethod
    def _are_keys(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            for key in value.get_secret_value().split(","):
                read_key(key)
        return value

    _database = form(
        "database_url",
        pattern=r"(?s:postgres(ql)?://\S.*)",
        allowed="an address such as postgresql://user:password@host/database",
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as users see it: its key in the file, its name in the environment, its description."""

    key: str
    field: FieldInfo

    @property
    def env(self) -> str:
        return PREFIX + self.key.replace(".", "_").upper()

    @property
    def description(self) -> str:
        return self.field.description or ""

    @property
    def secret(self) -> bool:
        return SecretStr in get_args(self.field.annotation)

    @property
    def default(self) -> object:
        return self.field.default

    @property
    def allowed(self) -> str:
        """The allowed values in words, for error messages and the reference."""
        return _allowed_values(self.field)


def known_settings() -> tuple[Setting, ...]:
    return tuple(_settings_by_key().values())


def load_settings(
    overrides: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """The effective settings. Overrides are by key (`web.port`); None means not given."""
    return trace_settings(overrides, environ=environ, cwd=cwd)[0]


def trace_settings(
    overrides: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[Settings, dict[str, str]]:
    """The effective settings, and the origin of each value by key."""
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    given = _from_overrides(overrides or {})
    named = _from_environment(environ)
    chosen = {**named, **given}
    locations = find_locations(chosen["data_dir"].value if "data_dir" in chosen else None, environ, cwd)
    file = locations.file
    sources = {**(_from_file(file) if file else {}), **chosen}
    settings = _validate(sources)
    queues_of(settings.queues, settings.routes)
    in_file = file is not None and sources.get("data_dir", _NOT_GIVEN).origin == str(file)
    data_dir = file.parent / expand_home(settings.data_dir) if file and in_file else locations.data
    settings = settings.model_copy(update={"data_dir": data_dir})
    return settings, {key: sources.get(key, _NOT_GIVEN).origin for key in _settings_by_key()}


def shown(settings: Settings) -> dict[str, object]:
    """Every setting by key, for display: secrets hidden, the password of the database masked."""
    return {setting.key: _display_value(setting.key, value_of(settings, setting.key)) for setting in known_settings()}


def secrets_of(settings: Settings) -> list[str]:
    """The secret values, so that they can be masked in logs."""
    values = (value_of(settings, setting.key) for setting in known_settings())
    texts = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
    passwords = [password for text in texts for password in passwords_in(text)]
    keys = [] if settings.secret_key is None else settings.secret_key.get_secret_value().split(",")
    return [text for text in texts + passwords + [key.strip() for key in keys] if text]


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    origin: str


_NOT_GIVEN = _Given(None, "default")


def _from_overrides(overrides: Mapping[str, object]) -> dict[str, _Given]:
    for key in overrides:
        if key not in _settings_by_key():
            raise _unknown(key, "override", _settings_by_key())
    return {key: _Given(value, "command line") for key, value in overrides.items() if value is not None}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    """Read `POSTROOM_*` variables, which come before their aliases.

    An empty one counts as not set: that is how compose files leave one out.
    """
    keys = {setting.env: setting.key for setting in known_settings()}
    given = {key: _Given(environ[name], name) for name, key in ALIASES.items() if environ.get(name)}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or NOT_SETTINGS.fullmatch(name):
            continue
        if name not in keys:
            raise _unknown(name, "environment", keys)
        if environ[name]:
            given[keys[name]] = _Given(environ[name], name)
    return given


def _from_file(file: Path) -> dict[str, _Given]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: this is not TOML: {error}; correct that line") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: cannot be read: {error}") from None
    known = _settings_by_key()
    given: dict[str, _Given] = {}
    for key, value in _flatten(document):
        if key in Settings.model_fields and key not in known:
            raise SettingsError(f"{file}: {key} is a section; write [{key}] and its settings below")
        if key not in known:
            raise _unknown(key, str(file), known)
        given[key] = _Given(value, str(file))
    return given


def _flatten(document: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if isinstance(value, dict) and above + name not in _settings_by_key():
            yield from _flatten(cast("dict[str, object]", value), f"{above}{name}.")
        else:
            yield above + name, value


def _validate(sources: Mapping[str, _Given]) -> Settings:
    try:
        return Settings.model_validate(_nested({key: given.value for key, given in sources.items()}))
    except ValidationError as error:
        problems = [_problem(detail["loc"], detail["type"], detail["msg"], sources) for detail in error.errors()]
        raise SettingsError("; and ".join(problems)) from None


def _nested(values: Mapping[str, object]) -> dict[str, Any]:
    """The values by section, as the file has them."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return nested


def read_setting(key: str, given: object) -> object:
    """Read one value as if the file gave it, and return it. Raises BadInput in the words of the file's error."""
    try:
        return value_of(Settings.model_validate(_nested({key: given})), key)
    except ValidationError as error:
        detail, setting = error.errors()[0], _settings_by_key()[key]
        allowed = _allowed_instead(setting, detail["type"], detail["msg"])
        raise BadInput("value", f"{given!r} is refused", f"use {allowed}") from None


def _problem(place: Iterable[int | str], kind: str, message: str, sources: Mapping[str, _Given]) -> str:
    parts = [str(part) for part in place]
    key = next(key for key in (".".join(parts[:end]) for end in (2, 1)) if key in _settings_by_key())
    within = ".".join(parts[key.count(".") + 1 :])
    setting = _settings_by_key()[key]
    given = sources.get(key, _Given(setting.default, "default"))
    value = HIDDEN if setting.secret else masked_urls(repr(given.value))
    if within and isinstance(given.value, dict | list | str) and key in ("queues", "routes"):
        problem = "there is no such setting" if kind == "extra_forbidden" else message.removeprefix("Value error, ")
        return f"{key}.{within} (from {given.origin}): {problem}; see docs/reference/queues.md"
    return f"{key}: {value} (from {given.origin}) is refused; use {_allowed_instead(setting, kind, message)}"


def _allowed_instead(setting: Setting, kind: str, message: str) -> str:
    """The values that are allowed, as the check that refused another one names them."""
    if kind == "value_error" and "a number, not true or false" not in message:
        return message.removeprefix("Value error, ")
    return setting.allowed


def _unknown(name: str, origin: str, known: Iterable[str]) -> SettingsError:
    hint = did_you_mean(name, known, "`postroom settings` lists those that exist", quoted=False)
    return SettingsError(f"{name} (from {origin}): there is no such setting; {hint}")


@cache
def _settings_by_key() -> dict[str, Setting]:
    return {key: Setting(key, field) for key, field in _fields(Settings)}


def _fields(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _fields(kind, f"{name}.")
        else:
            yield above + name, field


def value_of(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _display_value(key: str, value: object) -> object:
    match value:
        case SecretStr():
            return masked_urls(value.get_secret_value()) if key == "database_url" else HIDDEN
        case str() if key.endswith("webhook_url"):
            return masked_path(value)
        case Path():
            return str(value)
        case dict():
            return {name: _display_value(name, each) for name, each in cast("dict[str, object]", value).items()}
        case tuple():
            return [_display_value(key, each) for each in cast("tuple[object, ...]", value)]
        case BaseModel():
            return value.model_dump(mode="json", exclude_unset=True)
        case _:
            return value


def _allowed_values(field: FieldInfo) -> str:
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not NoneType]
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(map(str, kinds))
    if get_origin(field.annotation) is dict:
        return "tables, or as text their JSON"
    if get_origin(field.annotation) is tuple:
        lists: dict[object, str] = {str: "names, at least one", float: "numbers, separated by commas"}
        return lists.get(kinds[0], "a list of tables, or as text its JSON")
    words: dict[object, str] = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        Path: "a path",
        str: "a text",
        SecretStr: "a secret text",
    }
    return words[kinds[0]] + _bounds(field)


def _bounds(field: FieldInfo) -> str:
    names = ("ge", "gt", "le")
    limits = {name: getattr(mark, name) for mark in field.metadata for name in names if hasattr(mark, name)}
    match limits:
        case {"ge": low, "le": high}:
            return f" from {low} to {high}"
        case {"ge": low}:
            return f", {low} or more"
        case {"gt": low}:
            return f" above {low}"
        case _:
            return ""
