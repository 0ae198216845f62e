"""The names that people sign in with: one spelling each, whatever case they are typed in."""

import unicodedata

from postroom.core.errors import BadInput

LONGEST = 64
_MARKS = frozenset("._@-")


def person_name(text: str) -> str:
    """The name in the spelling in which it is stored and compared. Raises BadInput if it cannot be one."""
    name = unicodedata.normalize("NFKC", text.strip()).casefold()
    remedy = "use letters, digits and . _ @ - without spaces, such as mara"
    if not name:
        raise BadInput("name", "is empty", remedy)
    if len(name) > LONGEST:
        raise BadInput("name", f"has {len(name)} characters", f"use at most {LONGEST}")
    if not all(char.isalnum() or char in _MARKS for char in name) or not name[0].isalnum():
        raise BadInput("name", "contains a character that cannot be in a name, or begins with one", remedy)
    return name


def compared_name(text: str) -> str:
    """Return a typed name in the form in which it is looked up; an empty text if no one can have it."""
    try:
        return person_name(text)
    except BadInput:
        return ""
