"""The form of a rule: what it shows can be saved unchanged, and what it cannot show is left to the text."""

from dataclasses import replace

import pytest
from hypothesis import given
from starlette.datastructures import FormData

from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft, as_document, read_draft
from postroom.interfaces.dashboard.pages.rules.fields import (
    ACTIONS,
    CONDITIONS,
    ActionRow,
    Choice,
    ConditionRow,
    RuleFields,
    as_fields,
    document_of,
    fields_of,
    prefilled,
)
from support.rule_strategies import drafts, leaves

SHOP = RuleFields(
    name="shop", conditions=(ConditionRow("from", False, "@shop.example"),), steps=(ActionRow("archive"),)
)


def submitted(fields: RuleFields) -> FormData:
    """The form as a browser submits it, empty rows included."""
    pairs = [(name, getattr(fields, name)) for name in ("name", "description", "joining", "scope", "scope_ref")]
    pairs += [(name, getattr(fields, name)) for name in ("priority", "standing", "disabled_reason")]
    pairs += [(name, "yes") for name in ("needs_approval", "continues") if getattr(fields, name)]
    for row in fields.condition_rows:
        pairs += [("kind", row.kind), ("how", "not" if row.negated else "is"), ("value", row.value)]
    for step in fields.action_rows:
        pairs += [("action", step.action), ("argument", step.value)]
    return FormData(pairs)


@given(drafts(leaves))
def test_a_rule_that_fits_into_the_form_comes_out_of_it_unchanged(draft: RuleDraft) -> None:
    fields = as_fields(read_draft(as_document(draft)))
    if fields is None:
        return
    assert read_draft(document_of(fields)) == _whole(draft)
    assert fields_of(submitted(fields)) == replace(fields, name=" ".join(fields.name.split())) or "  " in draft.name


def _whole(draft: RuleDraft) -> RuleDraft:
    """The same rule; a list with one condition in it is that condition."""
    read = read_draft(as_document(draft))
    for joining in ("and", "or"):
        if list(read.conditions) == [joining] and len(read.conditions[joining]) == 1:
            return replace(read, conditions=read.conditions[joining][0])
    return read


@pytest.mark.parametrize("kind", CONDITIONS, ids=lambda each: each.kind)
def test_every_condition_of_the_form_is_one_that_rules_have(kind: Choice) -> None:
    example = {"from": "ida@shop.example", "header_match": "Precedence: bulk|list"}
    value = example.get(kind.kind, kind.example)
    draft = read_draft(document_of(replace(SHOP, conditions=(ConditionRow(kind.kind, True, value),))))
    assert as_fields(draft) == replace(SHOP, conditions=(ConditionRow(kind.kind, True, value if kind.example else ""),))


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda each: each.kind)
def test_every_action_of_the_form_is_one_that_rules_have(kind: Choice) -> None:
    fields = replace(SHOP, steps=(ActionRow(kind.kind, kind.example),))
    assert as_fields(read_draft(document_of(fields))) == fields


@pytest.mark.parametrize(
    "conditions",
    [
        {"and": [{"or": [{"from": "@a.example"}, {"to_me": True}]}, {"has_attachment": True}]},
        {"not": {"not": {"from": "@a.example"}}},
        {"not": {"has_attachment": True}},
        {"address_match": {"name": "Sender", "pattern": "x"}},
        {"larger": 1000},
    ],
    ids=str,
)
def test_what_has_no_row_is_left_to_the_text(conditions: dict[str, object]) -> None:
    assert as_fields(read_draft({"name": "x", "if": conditions, "then": "archive"})) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (replace(SHOP, conditions=()), "When: there is no condition"),
        (replace(SHOP, steps=()), "Then: there is no action"),
        (replace(SHOP, steps=(ActionRow("none"), ActionRow("star"))), "leaves the mail as it is, and does something"),
        (replace(SHOP, steps=(ActionRow("snooze", "soon"),)), "Snooze: 'soon' is no whole number"),
        (replace(SHOP, priority="first"), "Priority: 'first' is no whole number"),
        (replace(SHOP, steps=(ActionRow("apply_label"),)), "label"),
        (replace(SHOP, conditions=(ConditionRow("from", False, "nobody"),)), "is not an address"),
        (replace(SHOP, conditions=(ConditionRow("colour", False, "red"),)), "is not a known condition"),
        (replace(SHOP, name=""), "name: is not one line of text"),
    ],
)
def test_what_is_wrong_is_named(fields: RuleFields, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_draft(document_of(fields))


def test_a_new_rule_about_a_message_has_its_sender_and_subject() -> None:
    fields = prefilled("ida@shop.example", "Your parcel", None, "Shop")
    assert fields.conditions == (
        ConditionRow("from", False, "ida@shop.example"),
        ConditionRow("subject_contains", False, "Your parcel"),
    )
    assert (fields.name, fields.steps) == ("Mail of ida@shop.example", (ActionRow("apply_label", "Shop"),))
    assert prefilled(None, None, None, None) == RuleFields()
