"""The rules in the order in which they are tried, and the rules that Postroom proposes."""

from collections.abc import AsyncIterator, Mapping
from typing import get_args
from uuid import UUID

from starlette.routing import Route

from postroom.core.errors import NotFound
from postroom.core.rules.rule import SCOPES, ScopeName
from postroom.interfaces.dashboard.forms import Done, Form, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.rules import proposals
from postroom.operations.rules.rule_changes import (
    begin_shadow,
    confirm_rule,
    delete_rule,
    disable_rule,
    enable_rule,
    end_shadow,
    move_rule,
)
from postroom.operations.rules.rule_views import (
    DAYS,
    RuleState,
    read_rule,
    read_rules,
    rule_changes,
    unconfirmed_lines,
)

STATES: tuple[RuleState, ...] = get_args(RuleState)
EVERY = "all"
MOST_SHOWN = 100
BECAUSE = "switched off on the page"


def rule_id(given: str) -> UUID:
    """Read the id in an address. Raises NotFound."""
    return read_id(given, NotFound("there is no such rule; it may have been removed"))


class RulesPage(Page):
    address, title, template = "/rules", "Rules", "rules/list.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        scope: ScopeName | str = visit.choice("scope", (EVERY, *SCOPES), EVERY)
        state: RuleState | str = visit.choice("state", (EVERY, *STATES), EVERY)
        found = await read_rules(
            self._database,
            self._clock,
            MOST_SHOWN,
            visit.text("after"),
            next((each for each in SCOPES if each == scope), None),
            next((each for each in STATES if each == state), None),
        )
        return {
            "found": found,
            "scope": scope,
            "state": state,
            "days": DAYS,
            "is_whole": (scope, state) == (EVERY, EVERY),
            "proposals": await proposals.read_proposals(self._database),
            "unconfirmed": await unconfirmed_lines(self._database, self._clock()),
        }

    def changes(self) -> AsyncIterator[None]:
        return rule_changes(self._database)

    def actions(self) -> list[Route]:
        acts = {
            "/rules/{rule}/move": self._move,
            "/rules/{rule}/enable": self._enable,
            "/rules/{rule}/remove": self._remove,
            "/rules/{rule}/watch": self._begin_shadow,
            "/rules/{rule}/act": self._end_shadow,
            "/rules/proposals/{proposal}/accept": self._accept,
            "/rules/proposals/{proposal}/dismiss": self._dismiss,
        }
        return [
            form_route(self._site, "/rules/{rule}/confirm", self._confirm),
            form_route(self._site, "/rules/{rule}/disable", self._disable, reason=BECAUSE),
            *(form_route(self._site, address, submit) for address, submit in acts.items()),
        ]

    async def _move(self, form: Form) -> Done:
        down = form.text("to") == "down"
        line = await move_rule(form.by, _rule(form), "down" if down else "up")
        return Done(f"“{line.rule.name}” is tried {'later' if down else 'earlier'} now.")

    async def _enable(self, form: Form) -> Done:
        line = await enable_rule(form.by, _rule(form))
        return Done(f"“{line.rule.name}” is on: it decides about mail that comes in from now on.")

    async def _confirm(self, form: Form) -> Done:
        line = await confirm_rule(form.by, _rule(form), form.text("shown"))
        return Done(f"“{line.rule.name}” is confirmed: it decides about mail that comes in from now on.")

    async def _disable(self, form: Form) -> Done:
        line = await disable_rule(form.by, _rule(form))
        return Done(f"“{line.rule.name}” is off. What it did before stays as it is.")

    async def _remove(self, form: Form) -> Done:
        line = await read_rule(self._database, self._clock, _rule(form))
        await delete_rule(form.by, line.rule.id)
        return Done(f"“{line.rule.name}” is removed. Its text is in the audit log.", to="/rules")

    async def _begin_shadow(self, form: Form) -> Done:
        line = await begin_shadow(form.by, _rule(form))
        return Done(f"“{line.rule.name}” is in shadow: it decides, and nothing is done.")

    async def _end_shadow(self, form: Form) -> Done:
        line = await read_rule(self._database, self._clock, _rule(form))
        ended = await end_shadow(form.by, line.rule.id)
        doubts = f" Mind: {'; '.join(ended.doubts)}." if ended.doubts else ""
        return Done(f"“{line.rule.name}” acts from now on.{doubts}")

    async def _accept(self, form: Form) -> Done:
        active = form.text("as") == "active"
        accepted = await proposals.accept_proposal(form.by, _proposal(form), active=active)
        so_far = "" if active else ", in shadow: it decides, and nothing is done"
        return Done(f"“{accepted.rule}” is a rule now{so_far}.")

    async def _dismiss(self, form: Form) -> Done:
        return Done((await proposals.dismiss_proposal(form.by, _proposal(form))).done)


def _rule(form: Form) -> UUID:
    return rule_id(form.parameters["rule"])


def _proposal(form: Form) -> UUID:
    return read_id(form.parameters["proposal"], NotFound("there is no such proposal"))
