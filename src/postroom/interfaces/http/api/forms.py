"""The arguments that callers send, strictly read, and the plainest of answers."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from postroom.core.views import Done
from postroom.interfaces.http.cursors import LONGEST
from postroom.interfaces.http.mcp.tool import Arguments as ToolArguments
from postroom.interfaces.http.mcp.tool import Text as StorableText

__all__ = ["Done"]

LONGEST_FILTER = 500
LONGEST_REASON = 500
MOST_LISTED = 200

Text = StorableText
Filter = Annotated[StorableText, StringConstraints(min_length=1, max_length=LONGEST_FILTER)]
Json = dict[str, Any]


class Arguments(ToolArguments):
    """The base of all arguments: unknown ones are refused by name."""

    model_config = ConfigDict(defer_build=True)


class Nothing(Arguments):
    """No arguments."""


class Reason(Arguments):
    reason: Text | None = Field(None, max_length=LONGEST_REASON, description="Why, for the audit log.")


class Paged(Arguments):
    limit: int = Field(50, ge=1, le=MOST_LISTED, description=f"How many at most, 1 to {MOST_LISTED}.")
    next: Text | None = Field(None, max_length=LONGEST, description="`next` of the page before; else the first page.")
