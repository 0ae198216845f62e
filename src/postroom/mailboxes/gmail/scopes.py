"""The Google permissions that Postroom asks for: four levels with their scopes; and the one error text about a missing
permission.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from postroom.core.mail.account_repair import connect_command
from postroom.mailboxes.gmail.facts import NAME

READONLY = "https://www.googleapis.com/auth/gmail.readonly"
MODIFY = "https://www.googleapis.com/auth/gmail.modify"
LABELS = "https://www.googleapis.com/auth/gmail.labels"
COMPOSE = "https://www.googleapis.com/auth/gmail.compose"
SEND = "https://www.googleapis.com/auth/gmail.send"
FULL = "https://mail.google.com/"
# Of no level: requested in addition, when hints are pulled with the account's own consent.
PUBSUB = "https://www.googleapis.com/auth/pubsub"

Level = Literal["read", "organise", "send", "full"]

# The scopes requested at each level. `gmail.modify` covers labels too; only `full` may delete for good.
LEVELS: Mapping[Level, tuple[str, ...]] = {
    "read": (READONLY,),
    "organise": (MODIFY,),
    "send": (MODIFY, COMPOSE),
    "full": (FULL,),
}

_LEVEL_OF: Mapping[str, Level] = {
    READONLY: "read",
    MODIFY: "organise",
    LABELS: "organise",
    COMPOSE: "send",
    SEND: "send",
    FULL: "full",
}


DEFAULT_LEVEL: Level = "organise"


@dataclass(frozen=True)
class Consented:
    """The account that consented, and the granted scopes."""

    account: str
    scopes: frozenset[str]


def level_for(scope: str) -> Level:
    """The lowest level that covers the scope."""
    return _LEVEL_OF[scope]


# Which of Google's scopes contain which others, as far as Postroom uses them. Google lets `gmail.modify` send too; but
# a user who granted `organise` has not agreed to that, so it does not count as `send` here.
_CONTAINS: Mapping[str, frozenset[str]] = {
    READONLY: frozenset({READONLY}),
    LABELS: frozenset({LABELS}),
    MODIFY: frozenset({MODIFY, READONLY, LABELS}),
    SEND: frozenset({SEND}),
    COMPOSE: frozenset({COMPOSE, SEND}),
    FULL: frozenset({FULL, MODIFY, READONLY, LABELS, COMPOSE, SEND}),
}


def covered(granted: Collection[str]) -> frozenset[str]:
    """The granted scopes, with all that they contain."""
    return frozenset(inner for scope in granted for inner in _CONTAINS.get(scope, frozenset({scope})))


def missing_scopes(level: Level, granted: Collection[str]) -> tuple[str, ...]:
    """The scopes that the level needs and the user has not granted: each box on Google's page can be left empty."""
    has = covered(granted)
    return tuple(scope for scope in LEVELS[level] if scope not in has)


def granted_level(granted: Collection[str]) -> Level | None:
    """The highest level that was granted in full; None if not even reading was."""
    return next((level for level in reversed(tuple(LEVELS)) if not missing_scopes(level, granted)), None)


def needs_more(
    action: str, missing: Collection[str], consented: Consented | None = None, level: Level | None = None
) -> str:
    """The text for a user who has granted less than an action needs, with the command that asks for the rest.

    It is the same wherever this is detected: before Google is asked, from Google's refusal, and while connecting.
    Without `level` the scope belongs to no level, and the account keeps its level.
    """
    has = None if consented is None else granted_level(consented.scopes)
    needed = f"{action} needs {', '.join(missing)}" + (f" (the level {level})" if level else "")
    wanted = level or has or DEFAULT_LEVEL
    granted, command = "which was not granted", f"postroom account add gmail --level {wanted}"
    if consented is not None:
        scopes = ", ".join(sorted(consented.scopes)) or "nothing"
        granted = f"and {consented.account} has granted {scopes} ({f'the level {has}' if has else 'less than read'})"
        command = connect_command(NAME, consented.account, wanted)
    return f"{needed}, {granted}; run `{command}`, and leave every box on Google's page ticked"


def is_lower(level: Level | None, than: str) -> bool:
    """Whether a level allows less than another."""
    order = tuple(LEVELS)
    return level is None or (than in LEVELS and order.index(level) < order.index(cast("Level", than)))
