"""Random rules for property tests: trees of conditions, scopes, and whole valid drafts."""

from typing import Any

from hypothesis import strategies as st

from postroom.core.actions.action import DecidedType
from postroom.core.actions.parameters import instead_of_label
from postroom.core.rules.draft import RuleDraft

# Text as a person might write it, with everything that a file format could stumble over.
words = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")) | st.sampled_from("\"'\\:#-{}[]&*!|>%@,?"),
    min_size=1,
    max_size=12,
).filter(lambda text: bool(text.strip()) and text.isprintable())
names = words.map(str.strip).filter(bool)
# Not those of Gmail itself, which hypothesis finds among the constants of our sources, and which no rule may apply.
own_labels = names.filter(lambda name: instead_of_label(name) is None)
ADDRESSES = ["ida@shop.example", "Mara@x.example"]
DOMAINS = ["shop.example", "X.example"]

leaves: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(ADDRESSES).map(lambda each: {"sender_email": each}),
    st.sampled_from(DOMAINS).map(lambda each: {"sender_domain": each}),
    st.sampled_from([*ADDRESSES, "@shop.example"]).map(lambda each: {"to": each}),
    words.map(lambda each: {"subject_contains": each}),
    words.map(lambda each: {"body_contains": each}),
    words.map(lambda each: {"list_id": each}),
    words.map(lambda each: {"label_present": each}),
    st.sampled_from([r"\d+", "^re:", "a|b", 'say "x"']).map(lambda each: {"subject_regex": each}),
    st.sampled_from(["X-Odd", "precedence"]).map(lambda each: {"header_match": {"name": each}}),
    st.sampled_from([r"^bulk$", r"\\"]).map(lambda each: {"header_match": {"name": "X-Odd", "pattern": each}}),
    st.booleans().map(lambda each: {"has_attachment": each}),
    st.sampled_from(["12h", "7d", "2w"]).map(lambda each: {"older_than": each}),
    st.sampled_from(["larger", "smaller"]).map(lambda each: {each: "10M"}),
    st.sampled_from(["words", "subject_words", "from_name"]).map(lambda each: {each: '"Ida Holm" invoice'}),
    st.sampled_from(["from", "cc", "delivered_to"]).map(lambda each: {each: "ida@shop.example"}),
    st.sampled_from(["sender_in_contacts", "reply_to_mine"]).map(lambda each: {each: True}),
)


def trees(leaf: st.SearchStrategy[Any] = leaves) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda each: {"and": each}),
            st.lists(inner, min_size=1, max_size=3).map(lambda each: {"or": each}),
            inner.map(lambda each: {"not": each}),
        ),
        max_leaves=5,
    )


scopes = st.sampled_from(
    [("global", None), ("account", "mara@x.example"), ("domain", "shop.example"), ("sender", "ida@shop.example")]
)
actions: st.SearchStrategy[tuple[DecidedType, dict[str, Any]]] = st.one_of(
    st.sampled_from(["none", "archive", "mark_read", "star", "trash", "delete"]).map(lambda each: (each, {})),
    own_labels.map(lambda each: ("apply_label", {"label": each})),
    st.just(("forward", {"to": "boss@work.example"})),
    st.just(("forward", {"to": ["a@work.example", "b@work.example"]})),
    st.just(("snooze", {"amount": 3, "units": "days"})),
    st.just(("auto_reply", {"text": "I am: away.\n\n- really\n"})),
)


@st.composite
def drafts(draw: st.DrawFn, leaf: st.SearchStrategy[Any] = leaves) -> RuleDraft:
    action, parameters = draw(actions)
    scope, ref = draw(scopes)
    enabled = draw(st.booleans())
    return RuleDraft(
        draw(names),
        draw(trees(leaf)),
        action,
        parameters,
        draw(st.just("") | names),
        scope,
        ref,
        draw(st.integers(-1_000_000, 1_000_000)),
        draw(st.booleans()),
        draw(st.booleans()),
        enabled,
        None if enabled else draw(st.none() | names),
    )


def several(one: st.SearchStrategy[RuleDraft]) -> st.SearchStrategy[list[RuleDraft]]:
    return st.lists(one, max_size=4, unique_by=lambda draft: draft.name)
