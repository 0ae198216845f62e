"""Settings for outgoing mail: the fair queue, limits, the detection of abuse, and who is told of it."""

import re
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from postroom.core.outbound.abuse import AbusePolicy
from postroom.core.outbound.limits import DAILY_LIMIT, DailyLimits
from postroom.core.outbound.rollout import Rollout, Stage
from postroom.core.outbound.strikes import StrikeRule
from postroom.settings.checks import ADDRESS_WITH_QUERY, address, secret_of_webhook
from postroom.settings.sections import Seconds, Section, Share, Whole, no_bool, split_commas

Detection = Literal["off", "observe", "on"]


class _Switch(NamedTuple):
    """Accepts true and false, in any spelling, for two of the words of a setting."""

    on: str
    off: str

    def __call__(self, value: object) -> object:
        written = str(value).strip().lower()
        return {"true": self.on, "1": self.on, "false": self.off, "0": self.off}.get(written, written)


class OutboundSettings(Section):
    auto_reply_days: Whole = Field(
        7, ge=1, le=365, description="Days in which one sender gets at most one automatic reply."
    )
    expire_days: Whole = Field(
        5, ge=1, le=30, description="Days after which sending a mail is given up and its action fails."
    )
    concurrency: Whole = Field(
        50,
        ge=1,
        le=1000,
        description="Mails one process sends at the same time. Each needs a few times its size in memory.",
    )
    restore_settle_s: Whole = Field(
        30,
        ge=0,
        le=3600,
        description="Seconds to wait after a restore before sent mail is compared with the database, since requests of "
        "a process that has ended may still take effect.",
    )
    fair_queue: Annotated[Stage, BeforeValidator(_Switch("all", "off"))] = Field(
        "all",
        description="Who uses the fair queue: no tenant (`off`), no tenant while fairness is measured (`measure`), a "
        "`share` of the tenants, or `all` (`SMTP_FAIR_QUEUE_ENABLED`, also `true` and `false`).",
    )
    fair_queue_share: Share = Field(
        0.1, description="Share of the tenants that use the fair queue if `outbound.fair_queue` is `share`."
    )
    max_queue: Whole = Field(
        100,
        ge=1,
        le=100_000,
        description="Mails of all lanes that all processes together have in delivery at the same time "
        "(`SMTP_MAX_QUEUE`). As many again may be under way to destinations that are slow.",
    )
    priority_multipliers: Annotated[tuple[float, ...], BeforeValidator(split_commas)] = Field(
        (2.0, 1.0, 0.5, 0.1),
        description="Weights by which the lanes high, normal, low and throttled share capacity that others leave "
        "(`SMTP_PRIORITY_MULTIPLIERS`).",
    )
    daily_limit: Whole = Field(
        DAILY_LIMIT, ge=1, description="Messages per day (UTC) of a sender without a limit of its own."
    )
    domain_daily_limit: Annotated[int | None, Field(ge=1), BeforeValidator(no_bool)] = Field(
        None, description="Messages per day (UTC) of all senders of a domain; without it, no limit."
    )
    abuse_detection: Annotated[Detection, BeforeValidator(_Switch("on", "off"))] = Field(
        "on",
        description="Score senders and throttle them (`on`), only score them (`observe`), or neither (`off`; "
        "`SMTP_ABUSE_DETECTION_ENABLED`, also `true` and `false`).",
    )
    abuse_threshold: Whole = Field(
        50, ge=1, le=100, description="The abuse score from which on a sender is throttled (`SMTP_ABUSE_THRESHOLD`)."
    )
    max_throttle_ms: Whole = Field(
        86_400_000,
        ge=1,
        le=604_800_000,
        description="Milliseconds that a throttle lasts at most (`SMTP_MAX_THROTTLE_DURATION`).",
    )
    scoring_s: Seconds = Field(300.0, ge=1, le=3600, description="Seconds between two times that senders are scored.")
    strike_days: Whole = Field(
        3,
        ge=0,
        le=30,
        description="Days with a refusal without a reason after which an address gets no more mail of a tenant for a "
        "while; a delivery in between starts the count again. 0 never suppresses for that.",
    )
    strike_window_days: Whole = Field(30, ge=1, le=365, description="Days in which such refusals are counted.")
    strike_suppress_days: Whole = Field(
        30, ge=1, le=365, description="Days for which such refusals suppress an address."
    )
    notice_to: str | None = Field(
        None, description="The address that gets a mail when a sender is throttled; needs `outbound.notice_from`."
    )
    notice_from: str | None = Field(None, description="The address that such mail comes from.")
    notice_webhook_url: str | None = Field(
        None,
        description="Webhook that is called when a sender is throttled, signed with `outbound.notice_webhook_secret`.",
    )
    notice_webhook_secret: SecretStr | None = Field(
        None, description="The secret that signs the notices to that webhook."
    )

    @field_validator("priority_multipliers")
    @classmethod
    def _are_four(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if len(value) != 4 or not all(0 < each <= 1000 for each in value):
            raise ValueError("four numbers above 0, for high, normal, low and throttled, such as 2,1,0.5,0.1")
        return value

    @field_validator("notice_to", "notice_from")
    @classmethod
    def _is_an_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.field_name == "notice_from" and info.data.get("notice_to") is not None:
            raise ValueError("an address such as postroom@example.com, since outbound.notice_to is set")
        if value is not None and not re.fullmatch(r"[!-?A-~]+@[!-?A-~]+", value):
            raise ValueError("an address such as postmaster@example.com")
        return value

    _address = address(
        "notice_webhook_url", example="https://example.com/notices", pattern=ADDRESS_WITH_QUERY, keep_slash=True
    )

    _secret = secret_of_webhook("outbound", "notice_webhook_url", "notice_webhook_secret")

    @property
    def rollout(self) -> Rollout:
        return Rollout(self.fair_queue, self.fair_queue_share)

    @property
    def slots(self) -> int:
        """The most that one process has in delivery: its own limit, or that over all processes."""
        return min(self.concurrency, self.max_queue)

    @property
    def limits(self) -> DailyLimits:
        return DailyLimits(self.daily_limit, self.domain_daily_limit)

    @property
    def scoring_period(self) -> timedelta:
        return timedelta(seconds=self.scoring_s)

    @property
    def strike_rule(self) -> StrikeRule:
        window, lasts = timedelta(days=self.strike_window_days), timedelta(days=self.strike_suppress_days)
        return StrikeRule(self.strike_days, window, lasts)

    @property
    def abuse_policy(self) -> AbusePolicy:
        return AbusePolicy(self.abuse_threshold, timedelta(milliseconds=self.max_throttle_ms))
