"""A rule while somebody writes it, as a form or as text, and the check of what is written so far."""

from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.rules.documents import read_documents, write_rule
from postroom.core.rules.draft import RuleDraft, read_draft
from postroom.core.rules.in_words import conditions_in_words
from postroom.interfaces.dashboard.forms import Form
from postroom.interfaces.dashboard.pages.rules.fields import RuleFields, as_fields, document_of, fields_of
from postroom.interfaces.dashboard.pages.rules.listing import rule_id
from postroom.operations.rules.rule_matches import RuleMatcher, RuleMatches
from postroom.operations.rules.rules import RuleView
from postroom.words.actions import rule_does

LARGEST_TEXT = 64 * 1024
Way = Literal["form", "text"]
EXAMPLE = """name: receipts
if:
  and:
    - from: '@shop.example'
    - not: {subject_words: refund}
actions: [apply_label Receipts, archive]
"""


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """The result of a check: the problem, or the rule in words, as text, and the mail that it matches."""

    problem: str = ""
    when: str = ""
    does: str = ""
    text: str = ""
    matches: RuleMatches | None = None


@dataclass(frozen=True, slots=True)
class EditedRule:
    """The text written so far, and the stored rule and version that it is based on, if any."""

    way: Way = "form"
    fields: RuleFields = field(default_factory=RuleFields)
    text: str = ""
    rule_id: UUID | None = None
    version: int | None = None
    allow_missing: bool = False
    checked: CheckedRule | None = None

    @property
    def address(self) -> str:
        return "/rules/new" if self.rule_id is None else f"/rules/{self.rule_id}"

    def draft(self) -> RuleDraft:
        """Return the rule. Raises BadInput, which says what is wrong in it."""
        if self.way == "form":
            return read_draft(document_of(self.fields))
        if len(self.text) > LARGEST_TEXT:
            raise BadInput("text", "is longer than 64 KiB", "divide the rule, or use `postroom rules add`")
        found = read_documents(self.text)
        if len(found) != 1:
            raise BadInput("text", f"has {len(found)} rules", "write one here; import several")
        return found[0]

    def turned(self, way: Way) -> "EditedRule":
        """Return the same rule written the other way. Raises BadInput if it is not valid, or does not fit the form."""
        draft = self.draft()
        if way == "text":
            return replace(self, way="text", text=write_rule(draft))
        fields = as_fields(draft)
        if fields is None:
            raise BadInput("form", "has no fields for conditions inside others", "go on with the text")
        return replace(self, way="form", fields=fields)


def edited_from(form: Form) -> EditedRule:
    """Read what is written in the submitted form."""
    given, version = form.fields.get("text", ""), form.text("version")
    return EditedRule(
        way="text" if form.text("way") == "text" else "form",
        fields=fields_of(form.fields),
        text=given.replace("\r\n", "\n") if isinstance(given, str) else "",
        rule_id=rule_id(form.text("rule")) if form.text("rule") else None,
        version=int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else None,
        allow_missing=form.is_ticked("allow_missing"),
    )


def edited_of(view: RuleView) -> EditedRule:
    """Return a stored rule as it is edited: as a form if it fits into one."""
    text, fields = write_rule(view.draft), as_fields(view.draft)
    written = EditedRule(way="text", text=text, rule_id=view.id, version=view.version)
    return written if fields is None else replace(written, way="form", fields=fields)


async def check(edited: EditedRule, matcher: RuleMatcher) -> CheckedRule:
    """Check what is written, and find the stored mail that it matches."""
    try:
        draft = edited.draft()
        matches = await matcher.find(draft)
    except (BadInput, NotFound) as error:
        return CheckedRule(problem=str(error))
    does = rule_does(draft.action_type, draft.parameters)
    return CheckedRule("", conditions_in_words(draft.conditions), does, write_rule(draft), matches)
