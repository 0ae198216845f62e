"""The base of what callers send and get: strict arguments, and answers that are read from the views of `manage`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints, model_validator

from postroom.interfaces.http.api.cursors import LONGEST
from postroom.interfaces.http.mcp.tool import Arguments as ToolArguments
from postroom.interfaces.http.mcp.tool import Text as StorableText

LONGEST_FILTER = 500
LONGEST_REASON = 500
MOST_LISTED = 200

Text = StorableText
Filter = Annotated[StorableText, StringConstraints(min_length=1, max_length=LONGEST_FILTER)]
Seconds = Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
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


class Answer(BaseModel):
    """The base of all answers. `Form.of(view)` reads the fields from the attributes of a view.

    Text that strangers or a model wrote is in a form of its own, under `untrusted`, which reads the same view.
    """

    model_config = ConfigDict(from_attributes=True, frozen=True, defer_build=True)

    @classmethod
    def of(cls, view: object) -> Self:
        return cls.model_validate(view)

    @model_validator(mode="before")
    @classmethod
    def _with_untrusted(cls, view: Any) -> object:
        is_view = "untrusted" in cls.model_fields and not issubclass(type(view), (dict, BaseModel))
        return _Marked(view) if is_view else view


class _Marked:
    """A view whose `untrusted` is the view itself."""

    def __init__(self, view: object) -> None:
        self._view = view

    def __getattr__(self, name: str) -> object:
        return self._view if name == "untrusted" else getattr(self._view, name)


class Page(Answer):
    """The base of a page of a list."""

    next: str | None = Field(description="The cursor of the next page; null on the last one.")


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked for was done."""

    done: Annotated[str, "A sentence for people."]
