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
from postroom.operations.rules import proposals, shadow
from postroom.operations.rules.rule_views import (
    DAYS,
    RuleState,
    list_lines,
    load_line,
    move_rule,
    read_place,
    rule_changes,
    unconfirmed_lines,
)
from postroom.operations.rules.rules import confirm_rule, remove_rule, switch_rule

STATES: tuple[RuleState, ...] = get_args(RuleState)
EVERY = "all"
BECAUSE = "switched off on the page"


def rule_id(given: str) -> UUID:
    """Read the id in an address. Raises NotFound."""
    return read_id(given, NotFound("there is no such rule; it may have been removed"))


class RulesPage(Page):
    address, title, template = "/rules", "Rules", "rules/list.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        scope: ScopeName | str = visit.choice("scope", (EVERY, *SCOPES), EVERY)
        state: RuleState | str = visit.choice("state", (EVERY, *STATES), EVERY)
        found = await list_lines(
            self._database,
            self._clock(),
            scope=next((each for each in SCOPES if each == scope), None),
            state=next((each for each in STATES if each == state), None),
            after=None if (after := visit.text("after")) is None else read_place(after),
        )
        return {
            "found": found,
            "scope": scope,
            "state": state,
            "days": DAYS,
            "is_whole": (scope, state) == (EVERY, EVERY),
            "proposals": await proposals.open_lines(self._database),
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
            form_route(self._site, "/rules/{rule}/confirm", self._confirm, again=True),
            form_route(self._site, "/rules/{rule}/disable", self._disable, reason=BECAUSE),
            *(form_route(self._site, address, submit) for address, submit in acts.items()),
        ]

    async def _name(self, form: Form) -> str:
        line = await load_line(self._database, rule_id(form.parameters["rule"]), self._clock())
        return line.rule.name

    async def _move(self, form: Form) -> Done:
        down = form.text("to") == "down"
        name = await move_rule(form.by, rule_id(form.parameters["rule"]), down=down)
        return Done(f"“{name}” is tried {'later' if down else 'earlier'} now.")

    async def _enable(self, form: Form) -> Done:
        name = await self._name(form)
        await switch_rule(form.by, name, True)
        return Done(f"“{name}” is on: it decides about mail that comes in from now on.")

    async def _confirm(self, form: Form) -> Done:
        rule = rule_id(form.parameters["rule"])
        confirmed = await confirm_rule(form.by, rule, form.text("shown"))
        return Done(f"“{confirmed.name}” is confirmed: it decides about mail that comes in from now on.")

    async def _disable(self, form: Form) -> Done:
        name = await self._name(form)
        await switch_rule(form.by, name, False)
        return Done(f"“{name}” is off. What it did before stays as it is.")

    async def _remove(self, form: Form) -> Done:
        name = await self._name(form)
        await remove_rule(form.by, name)
        return Done(f"“{name}” is removed. Its text is in the audit log.", to="/rules")

    async def _begin_shadow(self, form: Form) -> Done:
        name = await self._name(form)
        await shadow.begin(form.by, shadow.ShadowScope("rule", name))
        return Done(f"“{name}” is in shadow: it decides, and nothing is done.")

    async def _end_shadow(self, form: Form) -> Done:
        name = await self._name(form)
        ended = await shadow.end(form.by, shadow.ShadowScope("rule", name))
        doubts = f" Mind: {'; '.join(ended.doubts)}." if ended.doubts else ""
        return Done(f"“{name}” acts from now on.{doubts}")

    async def _accept(self, form: Form) -> Done:
        active = form.text("as") == "active"
        accepted = await proposals.accept(form.by, _proposal(form), active=active)
        so_far = "" if active else ", in shadow: it decides, and nothing is done"
        return Done(f"“{accepted.rule}” is a rule now{so_far}.")

    async def _dismiss(self, form: Form) -> Done:
        await proposals.dismiss(form.by, _proposal(form))
        return Done("Dismissed; this rule is not proposed again.")


def _proposal(form: Form) -> UUID:
    return read_id(form.parameters["proposal"], NotFound("there is no such proposal"))
