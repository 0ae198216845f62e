"""The parts of the settings: what each holds, its default, and what it allows. `settings.py` reads them."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, field_validator


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")
    return value


def _split_commas(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_no_bool)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Names = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]


class Section(BaseModel):
    """What all parts of the settings share: frozen, nothing unknown, defaults checked like everything else."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)


class LogSettings(Section):
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least severe event logged.")
    format: Literal["auto", "json", "console"] = Field(
        "auto", description="`json` for machines, `console` for people; `auto` is `console` on a terminal, else `json`."
    )


class WebSettings(Section):
    host: str = Field("127.0.0.1", min_length=1, description="The address the pages are served on.")
    port: Whole = Field(8025, ge=0, le=65535, description="The port the pages are served on; 0 takes any free one.")
    allowed_hosts: Names = Field(
        ("127.0.0.1", "localhost", "[::1]"),
        min_length=1,
        description="Host names the pages answer to; a request for any other name is refused.",
    )


class WorkerSettings(Section):
    concurrency: Whole = Field(32, ge=1, le=1000, description="Jobs one worker process runs at the same time.")
    prefetch_ms: Whole = Field(
        50, ge=0, le=1000, description="Claim ahead at most this many milliseconds of work; 0 claims nothing ahead."
    )


class JobsSettings(Section):
    lease_s: Seconds = Field(60.0, gt=0, description="Seconds a claimed job is its worker's own without a heartbeat.")
    heartbeat_s: Seconds = Field(
        20.0, gt=0, description="Seconds between two heartbeats of a running job; at most half of `jobs.lease_s`."
    )
    drain_s: Seconds = Field(30.0, ge=0, description="Seconds a stopping worker lets its running jobs finish.")
    poll_s: Seconds = Field(1.0, gt=0, description="Seconds between two looks for work when no signal came.")
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


class GmailSettings(Section):
    base_url: str = Field("https://gmail.googleapis.com", description="Where Gmail's API answers.")
    token: SecretStr | None = Field(None, description="Access token for the sandbox mailbox.")
    poll_s: Seconds = Field(5.0, gt=0, description="Seconds between two looks at the mailbox.")
    snooze_label: str = Field(
        "Postroom/Snoozed", min_length=1, max_length=225, description="The label of snoozed mail, created on demand."
    )

    @field_validator("base_url")
    @classmethod
    def _speaks_http(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^\s/@]+[^\s@]*", value):
            raise ValueError("an address such as https://gmail.googleapis.com, without user or password")
        return value.rstrip("/")


class AccountSettings(Section):
    email: str | None = Field(None, description="The mail address of the mailbox's owner.")

    @field_validator("email")
    @classmethod
    def _has_both_sides(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[^\s@]+@[^\s@]+", value):
            raise ValueError("an address such as ada@example.com")
        return value
