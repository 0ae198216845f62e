"""The rules in the order in which they are tried, and the rules that Postroom proposes."""

from collections.abc import Mapping
from typing import get_args
from uuid import UUID

from starlette.routing import Route

from postroom.core.errors import NotFound
from postroom.core.rules.rule import SCOPES, ScopeName
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.rules import proposals
from postroom.operations.rules.rule_changes import (
    delete_rule,
    end_shadow,
)
from postroom.operations.rules.rule_views import (
    CHANNELS,
    DAYS,
    RuleState,
    read_rule,
    read_rules,
    unconfirmed_lines,
)

STATES: tuple[RuleState, ...] = get_args(RuleState)
EVERY = "all"
MOST_SHOWN = 100


def rule_id(given: str) -> UUID:
    """Read the id in an address. Raises NotFound."""
    return read_id(given, NotFound("there is no such rule; it may have been removed"))


class RulesPage(DashboardPage):
    address, title, template = "/rules", "Rules", "rules/list.html"
    channels = CHANNELS

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

    def actions(self) -> list[Route]:
        site = self._site
        return [
            form_route(site, "/rules/{rule}/remove", self._remove),
            form_route(site, "/rules/{rule}/act", self._end_shadow),
            form_route(site, "/rules/proposals/{proposal}/accept", self._accept),
        ]

    async def _remove(self, form: Form) -> Confirmation:
        line = await read_rule(self._database, self._clock, _rule(form))
        await delete_rule(form.by, line.rule.id)
        return Confirmation(f"“{line.rule.name}” is removed. Its text is in the audit log.", to="/rules")

    async def _end_shadow(self, form: Form) -> Confirmation:
        line = await read_rule(self._database, self._clock, _rule(form))
        ended = await end_shadow(form.by, line.rule.id)
        doubts = f" Mind: {'; '.join(ended.doubts)}." if ended.doubts else ""
        return Confirmation(f"“{line.rule.name}” acts from now on.{doubts}")

    async def _accept(self, form: Form) -> Confirmation:
        active = form.text("as") == "active"
        accepted = await proposals.accept_proposal(form.by, _proposal(form), active=active)
        so_far = "" if active else ", in shadow: it decides, and nothing is done"
        return Confirmation(f"“{accepted.rule}” is a rule now{so_far}.")


def _rule(form: Form) -> UUID:
    return rule_id(form.parameters["rule"])


def _proposal(form: Form) -> UUID:
    return read_id(form.parameters["proposal"], NotFound("there is no such proposal"))
