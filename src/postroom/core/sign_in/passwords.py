"""Passwords that are guessed first, however long they are: the name, a few famous words with decoration, and runs."""

import re

from postroom.core.errors import BadInput

SHORTEST, LONGEST = 12, 512
FEWEST_DIFFERENT = 5
_FAMOUS = (
    *("password", "passwort", "passwd", "postroom", "letmein", "welcome", "iloveyou", "changeme", "secret", "admin"),
    *("administrator", "qwerty", "qwertz", "azerty", "asdfgh", "yxcvbn", "zxcvbn", "abc", "login", "master", "dragon"),
    *("monkey", "football", "baseball", "sunshine", "princess", "trustno", "starwars", "superman", "batman", "hello"),
    *("default", "test", "demo", "guest", "root", "user", "mail", "please", "whatever", "motdepasse", "hallo"),
)
_LOOKS_LIKE = str.maketrans("014357$@!", "oiaestsai")
_RUNS = ("abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm")
_RUN_LENGTH = 4


def check_password(password: str, name: str, field: str = "password") -> None:
    """Raise BadInput if the password is too short, too long, or among the first that anybody would try."""
    if not SHORTEST <= len(password) <= LONGEST:
        problem = "is too short" if len(password) < SHORTEST else "is too long"
        raise BadInput(field, problem, f"use {SHORTEST} to {LONGEST} characters; four unrelated words are good")
    if not password.isprintable():
        raise BadInput(field, "contains a character that cannot be typed", "leave it out")
    if is_obvious(password, name):
        raise BadInput(field, "is one of the first that would be guessed", "use four unrelated words, or a random one")


def is_obvious(password: str, name: str) -> bool:
    """Whether little is left of the password without its name, famous words, runs and repetitions."""
    plain = password.casefold()
    if len(set(plain)) < FEWEST_DIFFERENT or plain == plain[: len(plain) // 2] * 2:
        return True
    # Digits may stand for letters, or for themselves: a run of them is one too.
    return any(len(_rest(each, name.casefold())) < SHORTEST // 2 for each in (plain, plain.translate(_LOOKS_LIKE)))


def _rest(plain: str, name: str) -> str:
    """The letters that remain without what everybody tries."""
    rest = _without_runs(plain)
    for word in sorted((*_FAMOUS, *re.split(r"[._@-]", name), name), key=len, reverse=True):
        if len(word) >= 3:
            rest = rest.replace(word, "")
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[\W\d_]", "", rest))


def _without_runs(plain: str) -> str:
    rest = plain
    for run in _RUNS:
        for line in (run, run[::-1]):
            for start in range(len(line) - _RUN_LENGTH + 1):
                rest = rest.replace(line[start : start + _RUN_LENGTH], "")
    return rest
