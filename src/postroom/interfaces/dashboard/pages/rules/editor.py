"""Write a new rule, or change one: checked while it is written, with the stored mail that it would match."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from postroom.core.access import ANSWER
from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.interfaces.dashboard.drafts import Drafts
from postroom.interfaces.dashboard.forms import SEE_OTHER, Confirmation, Form, form_route, own_path
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.pages.rules.edited import EXAMPLE, EditedRule, check, edited_from, edited_of
from postroom.interfaces.dashboard.pages.rules.fields import (
    ACTIONS,
    CONDITIONS,
    QUICK_ACTIONS,
    ConditionRow,
    RuleFields,
    prefilled,
    rows_about,
)
from postroom.interfaces.dashboard.pages.rules.listing import rule_id
from postroom.interfaces.dashboard.said import Said, say
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.interfaces.dashboard.visiting import visitor_of
from postroom.operations.accounts.accounts import list_accounts
from postroom.operations.accounts.labels import list_labels
from postroom.operations.mail.mail_page import show_mail
from postroom.operations.parts import Parts
from postroom.operations.people.form_tokens import masked_form_token
from postroom.operations.rules.rule_views import CHANNELS, DAYS, read_rule
from postroom.operations.rules.rules import add_rules, edit_rule, load_rule
from postroom.operations.rules.shadow import ShadowScope, doubts, report_on

WINDOWS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (0, "all mail"))
MOST_LABELS = 500


class EditorParts:
    """The shared parts of both pages: the drafts, the look at stored mail, and the choices of the form."""

    def __init__(self, parts: Parts) -> None:
        self.database = parts.database
        self.drafts = Drafts[EditedRule]()
        self.matcher = parts.matcher

    async def values(self, edited: EditedRule) -> Mapping[str, object]:
        accounts = [each for each in await list_accounts(self.database) if each.state != "removed"]
        labels = {each.name for each in await list_labels(self.database) if each.kind == "user"}
        return {
            "edited": edited,
            "condition_kinds": CONDITIONS,
            "action_kinds": ACTIONS,
            "windows": WINDOWS,
            "accounts": accounts,
            "labels": sorted(labels)[:MOST_LABELS],
            "checked": edited.checked,
        }

    def kept(self, edited: EditedRule, problem: str = "") -> Response:
        """Keep what is written, and show it again, with the problem if there is one."""
        response = RedirectResponse(f"{edited.address}?draft={self.drafts.keep(edited)}", SEE_OTHER)
        return say(response, Said(problem, "bad")) if problem else response


class NewRulePage(DashboardPage):
    """The editor for a new rule, and the routes of the editor's forms."""

    address, title, template = "/rules/new", "New rule", "rules/new.html"

    def __init__(self, site: Site, editor: EditorParts) -> None:
        super().__init__(site)
        self._editor = editor

    async def read(self, visit: Visit) -> Mapping[str, object]:
        given = [visit.text(name) for name in ("from", "subject", "list", "label")]
        fields = prefilled(*given)
        if (message := visit.text("message")) is not None:
            fields = RuleFields(conditions=tuple((await self._rows_about(message))[:1]))
        new = EditedRule(fields=fields, text=EXAMPLE, way=visit.choice("as", ("form", "text"), "form"))
        return await self._editor.values(self._editor.drafts.find(visit.text("draft")) or new)

    def actions(self) -> list[Route]:
        return [
            form_route(self._site, "/rules/check", self._check),
            form_route(self._site, "/rules/draft", self._keep, ANSWER),
            form_route(self._site, "/rules/save", self._save),
            Route("/rules/about/{message}", self._show_about, methods=["GET"]),
        ]

    async def _show_about(self, request: Request) -> Response:
        """Show the short form of a rule for mail like this message, for a dialog."""
        visitor = visitor_of(request)
        if not visitor.may(ANSWER.person):
            raise HTTPException(403)
        try:
            rows = await self._rows_about(request.path_params["message"])
        except (NotFound, BadInput) as error:
            raise HTTPException(404, detail=str(error)) from error
        values = await self._editor.values(EditedRule())
        back, token = own_path(request.query_params.get("back", "")), masked_form_token(visitor)
        form = self._site.render(
            "rules/about.html", rows=rows, quick_actions=QUICK_ACTIONS, back=back, form_token=token, **values
        )
        return HTMLResponse(form)

    async def _rows_about(self, message: str) -> list[ConditionRow]:
        mail = await show_mail(self._database, self._parts.policy, message)
        return rows_about(mail.sender, next((each.value for each in mail.headers if each.name == "list-id"), ""))

    async def _check(self, form: Form) -> Response:
        edited = edited_from(form)
        checked = await check(edited, self._editor.matcher)
        return HTMLResponse(self._site.render("rules/checked.html", checked=checked, edited=edited, zone=form.zone))

    async def _keep(self, form: Form) -> Response:
        """Keep what is written and show it again: checked, with one more row, or written the other way."""
        edited = edited_from(form)
        try:
            match form.text("turn"):
                case "text":
                    edited = edited.turned("text")
                case "form":
                    edited = edited.turned("form")
                case _:
                    edited = replace(edited, checked=await check(edited, self._editor.matcher))
        except BadInput as error:
            return self._editor.kept(edited, str(error))
        return self._editor.kept(edited)

    async def _save(self, form: Form) -> Confirmation | Response:
        edited = edited_from(form)
        try:
            return await self._store(edited, form)
        except Conflict as error:
            if error.field != "version" or edited.rule_id is None:
                return self._editor.kept(edited, str(error))
            return await self._kept_for_later(edited, edited.rule_id)
        except (BadInput, NotFound) as error:
            return self._editor.kept(edited, str(error))

    async def _kept_for_later(self, edited: EditedRule, rule_id: UUID) -> Response:
        """Keep what is written, based on the newest version, so that saving it once more is possible."""
        newest = (await read_rule(self._database, self._clock, rule_id)).rule
        problem = (
            f"“{newest.name}” was changed meanwhile, and is version {newest.version}: open it from the list to see it. "
            "Here is what you wrote; save it again to replace the other change."
        )
        return self._editor.kept(replace(edited, version=newest.version), problem)

    async def _store(self, edited: EditedRule, form: Form) -> Confirmation | Response:
        draft, database = edited.draft(), self._database
        if edited.rule_id is None:
            await add_rules(form.by, [draft], allow_missing=edited.allow_missing)
            view = await load_rule(database, draft.name)
            to = None if form.is_ticked("stay") else f"/rules/{view.id}"
            return Confirmation(f"“{view.name}” is a rule now.", to=to)
        try:
            before = (await read_rule(database, self._clock, edited.rule_id)).rule
        except NotFound:
            problem = "The rule was removed meanwhile. Here is what you wrote; save it to make it a new rule."
            return self._editor.kept(replace(edited, rule_id=None, version=None), problem)
        view = await edit_rule(
            form.by,
            before.name,
            draft,
            version=edited.version,
            allow_missing=edited.allow_missing,
        )
        return Confirmation(f"“{view.name}” is saved.", to=f"/rules/{view.id}")


class RulePage(DashboardPage):
    """One rule: its hits, its results in shadow, and the editor for those who may change it."""

    address, title, template = "/rules/{rule}", "Rule", "rules/rule.html"
    channels = CHANNELS

    def __init__(self, site: Site, editor: EditorParts) -> None:
        super().__init__(site)
        self._editor = editor

    async def read(self, visit: Visit) -> Mapping[str, object]:
        line = await read_rule(self._database, self._clock, rule_id(visit.parameters["rule"]))
        edited = self._editor.drafts.find(visit.text("draft")) or edited_of(line.rule)
        report = None
        if line.rule.mode == "shadow":
            report = await report_on(self._database, ShadowScope("rule", line.rule.name))
        return {
            **await self._editor.values(edited),
            "line": line,
            "days": DAYS,
            "report": report,
            "doubts": doubts(report.tally) if report else (),
        }
