"""What an account needs of its owner: a consent that is renewed in time, with as much in it as the rules need."""

import shlex
from datetime import datetime, timedelta
from typing import NamedTuple

DIES_SOON = timedelta(days=2)
PUBLISH = "publish the app in the Google Cloud console (Audience, Publish app), so that consents last"


def consent_command(email: str, level: str | None) -> str:
    """What the owner runs to consent again, at the level that it was, or at a higher one."""
    wanted = "" if level is None else f" --level {shlex.quote(level)}"
    return f"postroom account add gmail --email {shlex.quote(email)}{wanted}"


def resume_command(email: str) -> str:
    return f"postroom account resume {shlex.quote(email)}"


def reactivate_command(state: str, email: str, level: str | None) -> str:
    """What the owner runs so that an account which is not in use is used again."""
    return resume_command(email) if state == "paused" else consent_command(email, level)


def retry_command(email: str) -> str:
    """What the owner runs so that mail which was left out is taken in once more."""
    return f"postroom connector retry --account {shlex.quote(email)} --all"


class Repair(NamedTuple):
    """What is wrong about an account, and what puts it right before the account is resumed."""

    problem: str
    remedy: str


def repair_for(trouble: str, email: str) -> str:
    """The reason kept with an account whose consent would do, if something else were put right first."""
    return f"{trouble}{_then_resume(email)}"


def repair_in(reason: str | None, email: str) -> Repair | None:
    """What `repair_for` was told; None for any other reason, where only a new consent helps."""
    if reason is None or not reason.endswith(_then_resume(email)):
        return None
    problem, _, remedy = reason.removesuffix(_then_resume(email)).rpartition("; ")
    return Repair(problem, remedy)


def _then_resume(email: str) -> str:
    return f", then run `{resume_command(email)}`"


def dies_soon(dies_at: datetime | None, now: datetime) -> bool:
    """Whether a consent ends within two days, or has ended: the provider's clock decides, and not ours."""
    return dies_at is not None and dies_at - now <= DIES_SOON
