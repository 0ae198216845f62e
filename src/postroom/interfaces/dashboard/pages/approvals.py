"""Actions that wait for a yes: exactly what would happen, to whom, why it is asked and how long it waits.

An answer holds for the action that was shown, by its hash. Answering several at once asks people who they are again.
"""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

from starlette.routing import Route

from postroom.core.errors import BadInput, IllegalMove, NotFound
from postroom.interfaces.dashboard.forms import Confirmation, Form, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.actions.approvals import (
    ShownApproval,
    answer_approvals,
    count_waiting,
    group_lines,
    list_approvals,
    list_settled_approvals,
    reject_action,
    take_back_rejection,
)
from postroom.operations.mail.mail_lines import CHANNELS

STALE = "open the page again and look at it"


def pages(site: Site) -> list[DashboardPage]:
    return [ApprovalsPage(site)]


class ApprovalsPage(DashboardPage):
    address, title, template = "/approvals", "Approvals", "approvals.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        found = await list_approvals(self._database, self._clock, next=visit.text("after"))
        return {
            "lines": found.lines,
            "groups": group_lines(found.lines),
            "number": await count_waiting(self._database),
            "settled": await list_settled_approvals(self._database, self._clock),
            "further": None if found.next is None else visit.with_filters(after=found.next),
            "first": visit.with_filters(after=None) if "after" in visit.filters else None,
        }

    def actions(self) -> list[Route]:
        site = self._site
        return [
            form_route(site, "/approvals/approve-several", self._approve_several),
            form_route(site, "/approvals/reject-several", self._reject_several),
            form_route(site, "/approvals/{action}/reject", self._reject),
            form_route(site, "/approvals/take-back", self._take_back),
        ]

    async def _approve_several(self, form: Form) -> Confirmation:
        return await self._several(form, "approve")

    async def _reject_several(self, form: Form) -> Confirmation:
        return await self._several(form, "reject")

    async def _reject(self, form: Form) -> Confirmation:
        id = _read_id(form.parameters["action"])
        answered = await reject_action(form.by, id)
        return Confirmation(answered.said, rejected=[id])

    async def _take_back(self, form: Form) -> Confirmation:
        """Take the rejections back that can be, and say why the first of the others cannot."""
        problem, ids = "", [_read_id(each) for each in form.texts("rejected")]
        counted = 0
        for id in ids:
            try:
                await take_back_rejection(form.by.again(), id)
                counted += 1
            except (IllegalMove, NotFound) as error:
                problem = problem or str(error)
        if not counted:
            raise IllegalMove(problem or "no rejection was named")
        verb = "needs" if counted == 1 else "need"
        return Confirmation(f"{counted} {verb} your approval again. {problem}".strip())

    async def _several(self, form: Form, answer: Literal["approve", "reject"]) -> Confirmation:
        chosen = [_read_row(each) for each in form.texts("chosen")]
        answered = await answer_approvals(form.by, answer, chosen)
        sentence = f"{answered.counted} {'approved: being done' if answer == 'approve' else 'rejected: not done'}."
        for reason in list(answered.refused.values())[:1]:
            sentence += f" {len(answered.refused)} did not count: {reason}"
        rejected = [each.action for each in chosen if each.action not in answered.refused] if answer == "reject" else ()
        return Confirmation(sentence, rejected=rejected)


def _read_id(text: str) -> UUID:
    return read_id(text, NotFound("there is no such action; the page of approvals lists those that wait"))


def _read_row(text: str) -> ShownApproval:
    """Read a ticked row: the id of the action, and the hash that was shown."""
    id, _, action_hash = text.partition(":")
    if not action_hash:
        raise BadInput("chosen", "does not say what was shown", STALE)
    return ShownApproval(_read_id(id), action_hash)
