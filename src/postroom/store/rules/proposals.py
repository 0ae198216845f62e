"""Rules that Postroom proposes, and the user's answers. Only an answer turns a proposal into a rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.errors import Conflict, NotFound
from postroom.core.lifecycle import ProposalState
from postroom.core.rules.draft import LONGEST_NAME, RuleDraft, as_document, read_draft
from postroom.core.rules.learning import RuleSuggestion, merged
from postroom.store.engine.codecs import from_json, json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.store.rules.rules import CHANNEL, keep_rules

# More open proposals than this are of no use: until some are answered, no new ones are made.
MOST_OPEN = 100
MOST_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal as it is shown."""

    id: UUID
    account_id: UUID
    account: str
    rule: Mapping[str, Any]
    evidence: Mapping[str, Any]
    state: ProposalState
    rule_id: UUID | None
    created_at: datetime
    updated_at: datetime

    @property
    def draft(self) -> RuleDraft:
        return read_draft(self.rule)


def proposing(suggested: Sequence[RuleSuggestion], now: datetime) -> Script[None]:
    """Part of a transaction: propose each rule once; an open proposal gets the new evidence."""
    wanted = {each.fingerprint: each for each in suggested[:MOST_AT_ONCE]}
    if not wanted:
        return
    rows = yield sql("select_proposals_like", sorted(wanted))
    known = {fingerprint: (state, from_json(evidence)) for fingerprint, state, evidence in rows}
    [[opened]] = yield sql("count_open_proposals")
    for fingerprint, each in sorted(wanted.items()):
        state, before = known.get(fingerprint, (None, {}))
        if state is None:
            opened += 1
        if state in ("accepted", "dismissed") or (state is None and opened > MOST_OPEN):
            continue
        rule, evidence = json_text(as_document(each.draft)), json_text(merged(before, each.evidence))
        yield sql("upsert_proposal", new_id(), each.account_id, fingerprint, rule, evidence, now)


@query
def list_proposals(state: ProposalState | None, most: int) -> Script[list[ProposalView]]:
    """List proposals, newest first."""
    rows = yield sql("select_proposals", state, most)
    return read_rows(ProposalView, rows)


@query
def load_proposal(id: UUID) -> Script[ProposalView]:
    view = read_first(ProposalView, (yield sql("select_proposal", id)))
    if view is None:
        raise NotFound(f"there is no proposal {id}; see `postroom proposals list`")
    return view


@transaction
def accept_proposal(
    id: UUID, rule_id: UUID, shadow: bool, signed: Signature, now: datetime
) -> Script[tuple[ProposalView, str]]:
    """Create the rule, in shadow or in use, with the id `rule_id`; return the proposal and the rule's name."""
    view = yield from _ending(id, "accepted", rule_id, now)
    draft = replace(view.draft, shadow=shadow)
    if (yield sql("select_rule_named", draft.name)):
        draft = replace(draft, name=f"{draft.name[: LONGEST_NAME - 9]} {id.hex[-8:]}")
    yield from keep_rules.script([(rule_id, draft)], "refuse", "learned", signed, now)
    return view, draft.name


@transaction
def dismiss_proposal(id: UUID, signed: Signature, now: datetime) -> Script[ProposalView]:
    """Dismiss the proposal; it is not made again."""
    view = yield from _ending(id, "dismissed", None, now)
    yield from auditing(signed.under("proposals.dismiss", "proposal", str(id)), now)
    yield Notify(CHANNEL, "dismissed")
    return view


def _ending(id: UUID, state: ProposalState, rule_id: UUID | None, now: datetime) -> Script[ProposalView]:
    """End the proposal first, so that of two simultaneous answers one finds it already answered."""
    ended = yield sql("end_proposal", id, state, rule_id, now)
    view = yield from load_proposal.script(id)
    if not ended:
        raise Conflict("proposal", f"it was {view.state} already", "see `postroom proposals list`")
    return view
