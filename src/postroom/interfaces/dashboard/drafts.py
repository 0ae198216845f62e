"""Unsaved text of forms: kept for a while, so that no error and no page costs them text.

Each has an id that cannot be guessed, which stands in the address. Only the newest are kept, in memory.
"""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from postroom.interfaces.dashboard.forms import Form

MOST_KEPT = 200
Kept = TypeVar("Kept")


class Drafts(Generic[Kept]):
    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[str, Kept] = {}

    def keep(self, draft: Kept) -> str:
        """Keep it, and return its id."""
        id = secrets.token_urlsafe(9)
        self._kept[id] = draft
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return id

    def find(self, id: str | None) -> Kept | None:
        """Return the draft; None if there is none, or not any more."""
        return None if id is None else self._kept.get(id)


@dataclass(frozen=True, slots=True)
class RefusedForm:
    """A form that was not carried out: its fields but for passwords, and what was wrong with which of them.

    `field` is empty if it was none in particular.
    """

    fields: Mapping[str, str]
    field: str
    problem: str

    @classmethod
    def of(cls, form: Form, field: str, problem: str, *, without: Collection[str] = ()) -> Self:
        """Keep all fields but those `without` which the form is shown again, such as passwords."""
        left_out = {*without, "form_token", "back"}
        kept = {name: form.text(name) for name in form.fields if name not in left_out}
        return cls(kept, field, problem)
