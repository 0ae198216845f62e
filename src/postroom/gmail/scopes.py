"""Which of Google's permissions Postroom asks for: four levels, each with the scopes that it stands for."""

from collections.abc import Collection, Mapping
from typing import Literal

from postroom.core.errors import PostroomError

READONLY = "https://www.googleapis.com/auth/gmail.readonly"
MODIFY = "https://www.googleapis.com/auth/gmail.modify"
LABELS = "https://www.googleapis.com/auth/gmail.labels"
COMPOSE = "https://www.googleapis.com/auth/gmail.compose"
SEND = "https://www.googleapis.com/auth/gmail.send"
FULL = "https://mail.google.com/"

Level = Literal["read", "organise", "send", "full"]

# What is asked for at each level. `gmail.modify` covers labels too; only `full` may delete for good.
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


def level_for(scope: str) -> Level:
    """The lowest level that covers the scope."""
    return _LEVEL_OF[scope]


# Which scopes of Google's contain which others, as far as Postroom uses them. `gmail.modify` would let Google send
# too; who granted `organise` has not agreed to that, so it does not count as `send` here.
_CONTAINS: Mapping[str, frozenset[str]] = {
    READONLY: frozenset({READONLY}),
    LABELS: frozenset({LABELS}),
    MODIFY: frozenset({MODIFY, READONLY, LABELS}),
    SEND: frozenset({SEND}),
    COMPOSE: frozenset({COMPOSE, SEND}),
    FULL: frozenset({FULL, MODIFY, READONLY, LABELS, COMPOSE, SEND}),
}


def covered(granted: Collection[str]) -> frozenset[str]:
    """The scopes that were granted, with all that they contain."""
    return frozenset(inner for scope in granted for inner in _CONTAINS.get(scope, frozenset({scope})))


def missing_scopes(level: Level, granted: Collection[str]) -> tuple[str, ...]:
    """What the level needs and the user has not granted: each box of Google's page can be left empty."""
    has = covered(granted)
    return tuple(scope for scope in LEVELS[level] if scope not in has)


def granted_level(granted: Collection[str]) -> Level | None:
    """The highest level that was granted in full; none when not even reading was."""
    return next((level for level in reversed(tuple(LEVELS)) if not missing_scopes(level, granted)), None)


def require_level(needed: Level, granted: Collection[str], what: str, account: str) -> None:
    """Refuses what the user has not agreed to, before Google has to, and says how to agree."""
    missing = missing_scopes(needed, granted)
    if missing:
        raise LevelTooLow(what, account, needed, granted_level(granted), missing)


class LevelTooLow(PostroomError):
    """The user has agreed to less than this needs."""

    def __init__(self, what: str, account: str, needed: Level, has: Level | None, missing: Collection[str]) -> None:
        super().__init__(
            f"{what} needs the level {needed}, and {account} is connected with {has or 'less than read'} "
            f"(not granted: {', '.join(missing)}); run `postroom account add gmail --email {account} "
            f"--level {needed} --renew`, and leave every box on Google's page ticked"
        )
        self.needed = needed
        self.has = has
