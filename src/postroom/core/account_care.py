"""What an account needs of its owner: a consent that is renewed in time, with as much in it as the rules need."""

import shlex
from datetime import datetime, timedelta

DIES_SOON = timedelta(days=2)
PUBLISH = "publish the app in the Google Cloud console (Audience, Publish app), so that consents last"


def consent_command(email: str, level: str | None) -> str:
    """What the owner runs to consent again, at the level that it was, or at a higher one."""
    wanted = "" if level is None else f" --level {shlex.quote(level)}"
    return f"postroom account add gmail --email {shlex.quote(email)}{wanted}"


def resume_command(email: str) -> str:
    return f"postroom account resume {shlex.quote(email)}"


def dies_soon(dies_at: datetime | None, now: datetime) -> bool:
    """Whether a consent ends within two days, or has ended: the provider's clock decides, and not ours."""
    return dies_at is not None and dies_at - now <= DIES_SOON
