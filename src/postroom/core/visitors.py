"""Who looks at the pages, and what their role lets them do.

A viewer reads. An operator also acts: approves, undoes, retries, writes rules. An admin also changes who may do what:
people, tokens, accounts, settings. Each role may do all that the one before it may.
"""

from dataclasses import dataclass
from typing import Literal, get_args

PersonRole = Literal["viewer", "operator", "admin"]
PERSON_ROLES: tuple[PersonRole, ...] = get_args(PersonRole)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person in front of a page.

    `form_token` proves that a form was rendered for this visitor; answers carry it masked. `is_fresh` says that they
    proved who they are a few minutes ago, which is asked of them again before acts that are hard to take back.
    """

    name: str
    role: PersonRole
    form_token: str
    is_fresh: bool = True

    def may(self, role: PersonRole) -> bool:
        """Whether this visitor has the rights of that role."""
        return PERSON_ROLES.index(self.role) >= PERSON_ROLES.index(role)
