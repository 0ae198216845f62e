"""The sections of the settings: fields, defaults and allowed values. `reading.py` reads them."""

import json
import re
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from postroom.core.actions.action import ACTION_TYPES
from postroom.core.days import zone_named
from postroom.core.errors import BadInput
from postroom.core.mail.categories import chosen_categories
from postroom.core.mail.retention import FOR_GOOD, MOST_DAYS, RetentionPolicy
from postroom.settings.checks import address, form


def no_bool(value: object) -> object:
    """Refuse true and false, which are numbers to Python."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def existing_zone(value: str) -> str:
    """Refuse a name that is not that of a time zone."""
    try:
        zone_named(value)
    except BadInput as error:
        raise ValueError(error.remedy.removeprefix("use ")) from None
    return value


def from_json(value: object) -> object:
    """Parse a table that was written as JSON, as in the environment."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError("a table, or as text its JSON") from None


def split_commas(value: object) -> object:
    """Split a list that was written as one text, as in the environment."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(no_bool)]
Seconds = Annotated[float, BeforeValidator(no_bool), Field(allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(no_bool), Field(ge=0, le=1, allow_inf_nan=False)]
Cents = Annotated[float, BeforeValidator(no_bool), Field(allow_inf_nan=False, le=10_000_000)]
Price = Annotated[float | None, Field(ge=0, le=10_000_000, allow_inf_nan=False), BeforeValidator(no_bool)]
Zone = Annotated[str, AfterValidator(existing_zone)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]


class Section(BaseModel):
    """The base of all sections: frozen, no unknown fields, defaults validated too."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least severe event logged.")
    format: Literal["auto", "json", "console", "words"] = Field(
        "auto",
        description="`json` for machines; `console`, the same on short lines; `words`, a sentence for each event that "
        "matters. `auto` is `words` on a terminal (`console` at level `debug`), else `json`.",
    )


class WorkerSettings(Section):
    concurrency: Whole = Field(32, ge=1, le=1000, description="Jobs one worker process runs at the same time.")
    prefetch_ms: Whole = Field(
        50, ge=0, le=1000, description="Milliseconds of work to claim ahead at most; 0 claims nothing ahead."
    )


class JobsSettings(Section):
    lease_s: Seconds = Field(60.0, gt=0, description="Seconds a worker keeps its claimed jobs without a heartbeat.")
    heartbeat_s: Seconds = Field(
        20.0, gt=0, description="Seconds between two heartbeats of a worker; at most half of `jobs.lease_s`."
    )
    drain_s: Seconds = Field(30.0, ge=0, description="Seconds a stopping worker waits for its running jobs.")
    poll_s: Seconds = Field(60.0, gt=0, description="Seconds between two polls for work when no signal came.")
    keep_completed_days: Whole = Field(7, ge=0, description="Days a completed job is kept.")
    keep_failed_days: Whole = Field(90, ge=0, description="Days a failed job is kept.")
    keep_canceled_days: Whole = Field(30, ge=0, description="Days a canceled job is kept.")

    @field_validator("heartbeat_s")
    @classmethod
    def _well_inside_the_lease(cls, value: float, info: ValidationInfo) -> float:
        lease = info.data.get("lease_s")
        if lease is not None and value > lease / 2:
            raise ValueError(f"at most half of jobs.lease_s, which is {lease:g}")
        return value


class ModelSettings(Section):
    provider: Literal["none", "openai", "anthropic"] = Field(
        "none",
        description="The API of the language model: `openai` also for servers of your own; with `none`, only rules "
        "decide.",
    )
    name: str | None = Field(None, min_length=1, max_length=200, description="The provider's name for the model.")
    base_url: str | None = Field(
        None,
        description="The address of the model, if not the provider's own, such as `http://127.0.0.1:11434/v1`.",
    )
    api_key: SecretStr | None = Field(
        None, description="The provider's API key; a server of your own at `model.base_url` may need none."
    )
    mode: Literal["full", "headers", "redacted"] = Field(
        "full",
        description="What the model sees of a mail: all of it (`full`), its `headers` without the text, or all of it "
        "`redacted`: without addresses, identifying numbers, and what follows the path in links.",
    )
    temperature: Share = Field(0.2, description="How much the model's answers vary; some models ignore it.")
    max_output_tokens: Whole = Field(
        1_000, ge=100, le=32_000, description="Tokens in an answer of the model, its thinking included."
    )
    timeout_s: Seconds = Field(
        60.0, gt=0, le=600, description="Seconds after which a call without a complete answer is given up."
    )
    concurrency: Whole = Field(
        4,
        ge=1,
        le=100,
        description="Calls that a process makes at once; the others wait their turn. For a server of your own, as many "
        "as it answers at once.",
    )
    max_cents_per_day: Cents = Field(
        100.0,
        ge=0,
        description="US cents that all calls of a day may cost; then the model is not asked until the next day, which "
        "begins at midnight in `time_zone`. Backfills do not count: each has a cap of its own.",
    )
    sender_share: Share = Field(
        0.1, description="The part of a day's budget that mail of one sender may cost; the rest of it waits."
    )
    domain_share: Share = Field(
        0.25, description="The same for all senders of a domain; your contacts there do not count."
    )
    kept_for_contacts: Share = Field(
        0.2, description="The part of a day's budget that is kept for mail of your contacts."
    )
    kept_for_direct: Share = Field(
        0.2, description="The part that is kept for mail written to you, and not used for mail in bulk."
    )
    max_cents_per_message: Cents = Field(5.0, ge=0, description="US cents that all calls about one message may cost.")
    input_cents_per_million: Price = Field(
        None,
        description="Price of a million tokens sent, in US cents; needed if Postroom does not know it.",
    )
    output_cents_per_million: Price = Field(
        None,
        description="Price of a million tokens received, in US cents; 0 for a model of your own.",
    )

    @field_validator("kept_for_direct")
    @classmethod
    def _leaves_something(cls, value: float, info: ValidationInfo) -> float:
        if value + info.data.get("kept_for_contacts", 0) > 1:
            raise ValueError("at most 1 together with model.kept_for_contacts")
        return value

    @field_validator("name")
    @classmethod
    def _is_named(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("provider", "none") != "none":
            raise ValueError(f"the name of a model, since model.provider is {info.data['provider']}")
        return value

    _address = address("base_url", example="http://127.0.0.1:11434/v1")

    @field_validator("api_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is None:
            if info.data.get("provider", "none") != "none" and info.data.get("base_url") is None:
                raise ValueError("the key that the provider gave you, or set model.base_url for a server of your own")
        elif not re.fullmatch(r"[!-~]+", value.get_secret_value()):
            raise ValueError("the key as the provider gave it, without spaces and line breaks")
        return value


class SafetySettings(Section):
    confidence: Share = Field(0.7, description="Decisions of a model that is less sure than this need your approval.")
    trash_confidence: Share = Field(0.9, description="The same for moving a message to the trash.")
    always_approve: Names = Field((), description="Actions that always need your approval, such as `trash,snooze`.")
    trust_rules: bool = Field(
        False, description="Let your own rules forward mail and reply to it without asking you each time."
    )
    trust_agents: bool = Field(
        False, description="Let agents do what can be undone without asking you; anything else they only propose."
    )
    hourly_cap: Whole = Field(
        20, ge=0, description="Messages per hour and account that may be deleted, forwarded or replied to."
    )
    agent_hourly_cap: Whole = Field(
        20,
        ge=0,
        description="Actions per hour that one agent may do, and as many that it may undo, without your approval where "
        "`safety.trust_agents` is set; the rest need your approval.",
    )
    hidden_per_sender: Whole = Field(
        5,
        ge=0,
        description="Messages of one sender that the model and agents may archive, trash, mark as read or snooze for "
        "more than a week in a day without your approval. Your own rules may hide any number.",
    )
    hidden_per_hour: Whole = Field(30, ge=0, description="The same for all senders of an account, in an hour.")
    hidden_per_day: Whole = Field(200, ge=0, description="The same for all senders of an account, in a day.")
    approval_notices_per_hour: Whole = Field(
        20,
        ge=0,
        description="Notices per hour that ask you about single actions; the rest are collected in one digest.",
    )
    approval_hours: Whole = Field(
        24, ge=1, le=720, description="Hours after which an action without approval is rejected."
    )

    @field_validator("always_approve")
    @classmethod
    def _are_actions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(value) - set(ACTION_TYPES)):
            raise ValueError(f"actions, and {unknown[0]!r} is not one: {', '.join(ACTION_TYPES)}")
        return value


class InboxSettings(Section):
    keep_days: Whole = Field(
        30, ge=1, description="Days an ended message is kept, for inspection and replay; its key is kept for good."
    )
    rollup_days: Whole = Field(400, ge=1, description="Days the hourly counts are kept.")


Days = Annotated[int, BeforeValidator(no_bool), Field(ge=0, le=MOST_DAYS)]


class RetentionSettings(Section):
    full_days: Days = Field(
        FOR_GOOD, description="Days that the content of mail stored in full is kept; 0 keeps it for good."
    )
    metadata_days: Days = Field(
        FOR_GOOD, description="Days that the headers of mail stored as metadata are kept; 0 keeps them for good."
    )
    categories: Annotated[dict[str, Days], BeforeValidator(from_json)] = Field(
        {},
        description="Days for mail of a category, instead of those of its tier, such as "
        "`{finance = 3650, health = 0}`; of several categories the longest time counts.",
    )

    @field_validator("categories")
    @classmethod
    def _exist(cls, value: dict[str, int]) -> dict[str, int]:
        try:
            chosen_categories(list(value))
        except BadInput as error:
            raise ValueError(f"names of categories: {error.problem}; {error.remedy}") from None
        return value

    @property
    def policy(self) -> RetentionPolicy:
        return RetentionPolicy(self.full_days, self.metadata_days, dict(self.categories))


class RedisSettings(Section):
    url: SecretStr | None = Field(
        None, description="The Redis that `postroom connector redis-stream` reads, such as `redis://127.0.0.1:6379/0`."
    )

    _form = form(
        "url",
        pattern=r"(?s:(rediss?|unix)://\S.*)",
        allowed="an address such as redis://user:password@host:6379/0, rediss://… or unix:///socket",
    )


class TelemetrySettings(Section):
    metrics: bool = Field(True, description="Serve metrics for Prometheus at `/metrics`.")
    otlp_endpoint: str | None = Field(
        None, description="Send metrics and traces to this OTLP/HTTP collector, such as `http://127.0.0.1:4318`."
    )
    otlp_headers: SecretStr | None = Field(
        None, description="Headers for the collector, `name=value,name=value`; a comma in a value is `%2C`."
    )
    traces_sample_ratio: Share = Field(
        1.0, description="Share of new traces that are sent; a trace that came with a message keeps its own decision."
    )
    service_name: str = Field(
        "postroom", min_length=1, max_length=255, description="The name of this installation in metrics and traces."
    )

    listen: str | None = Field(
        None,
        description="Where a worker, or a connector that runs by itself, serves its `/metrics`, such as "
        "`127.0.0.1:9464`; each such process needs its own port.",
    )

    @field_validator("listen")
    @classmethod
    def _is_host_and_port(cls, value: str | None) -> str | None:
        if value is None:
            return None
        found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})", value)
        if found is None or int(found[2]) > 65_535:
            raise ValueError("a host and a port, such as 127.0.0.1:9464")
        return value

    _address = address("otlp_endpoint", example="http://127.0.0.1:4318")

    @field_validator("otlp_headers")
    @classmethod
    def _are_headers(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            read_headers(value.get_secret_value())
        return value


def read_headers(text: str) -> dict[str, str]:
    """Parse headers from `name=value,name=value`. Raises ValueError, which quotes nothing: a value may be secret."""
    headers: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, value = pair.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not re.fullmatch("[ -~]*", value):
            raise ValueError("name=value,name=value, in printable ASCII")
        headers[name] = value.strip()
    return headers
