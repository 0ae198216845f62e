"""The owner's part in keeping an account usable: a timely consent that covers the actions of the rules, or the right
password.
"""

import shlex
from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.core.mail.providers import SignIn

DIES_SOON = timedelta(days=2)
PUBLISH = "publish the app in the Google Cloud console (Audience, Publish app), so that consents last"


def connect_command(provider: str, email: str, level: str | None = None) -> str:
    """The command to connect the account again, with a new password or a new consent, to this level of it or the one
    that it has.
    """
    wanted = "" if level is None else f" --level {shlex.quote(level)}"
    return f"postroom account add {provider} --email {shlex.quote(email)}{wanted}"


def resume_command(email: str) -> str:
    return f"postroom account resume {shlex.quote(email)}"


def act_command(email: str) -> str:
    """The command to act on new mail of an account."""
    return f"postroom account act {shlex.quote(email)} --from now"


def reactivate_command(state: str, email: str, level: str | None, provider: str) -> str:
    """The command that makes an inactive account active again."""
    if state == "paused":
        return resume_command(email)
    return connect_command(provider, email, level)


def retry_command(email: str) -> str:
    """The command to retry mail that was refused or set aside."""
    return f"postroom connector retry --account {shlex.quote(email)} --all"


def lost_access(email: str, sign_in: SignIn) -> str:
    """Why a mailbox can no longer be opened, without the end of the sentence."""
    return f"The server refused the password for {email}" if sign_in == "password" else f"{email} needs your consent"


def parked_words(email: str, state: str, why: str) -> str:
    """Why work on a mailbox waits for its owner."""
    return f"{email} {'is paused' if state == 'paused' else 'cannot be opened'}: {why}"


class Repair(NamedTuple):
    """The problem with an account, and how to fix it before the account is resumed."""

    problem: str
    remedy: str


def repair_for(problem_and_remedy: str, email: str) -> str:
    """The reason to store with an account whose consent is valid, but which needs another repair first."""
    return f"{problem_and_remedy}{_then_resume(email)}"


def repair_in(reason: str | None, email: str) -> Repair | None:
    """The repair in a reason that `repair_for` made; None for any other, where only a new consent helps."""
    if reason is None or not reason.endswith(_then_resume(email)):
        return None
    problem, _, remedy = reason.removesuffix(_then_resume(email)).rpartition("; ")
    return Repair(problem, remedy)


def _then_resume(email: str) -> str:
    return f", then run `{resume_command(email)}`"


def dies_soon(dies_at: datetime | None, now: datetime) -> bool:
    """Whether a consent ends within two days, or should have ended: the provider's clock decides, not ours."""
    return dies_at is not None and dies_at - now <= DIES_SOON
