"""The tools for stored mail, actions and the kill switch.

A caller that is bound to an account sees no other: for it, messages of other accounts do not exist. Calls are audited
with ids only, never with the query or the text that was read.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

from postroom.act.agents import Agents
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import BadInput, Refused, SafetyRefused
from postroom.core.mail.search import read_query
from postroom.core.rules.conditions import recipients
from postroom.manage.accounts import list_accounts
from postroom.manage.audit import Signature, signature
from postroom.manage.kill_switch import pause_changes, resume_changes
from postroom.store import pauses
from postroom.store.actions import ActionView, list_actions
from postroom.store.audit import record_audit
from postroom.store.decisions import DecisionView, decisions_about
from postroom.store.engine.codecs import json_text, time_text
from postroom.store.engine.cursors import Cursor, read_cursor
from postroom.store.search import LONGEST_TEXT, NEWEST, FoundMail, ReadMail, check_message, read_mail, search_mail
from postroom.switchboard.tools import agent_schemas as forms
from postroom.switchboard.tools.ingest_calls import Call
from postroom.switchboard.tools.ingest_schemas import NoArguments
from postroom.switchboard.tools.untrusted import own_labels, system_labels

MOST_EXPLAINED = 100
# Texts of outgoing mail, which are not shown in the list of actions.
_TEXTS = frozenset({"text", "html", "note"})


async def search(call: Call, arguments: forms.SearchArguments) -> forms.SearchAnswer:
    database, principal = call.services.database, call.principal
    query = read_query(arguments.query)
    before = NEWEST if arguments.before is None else read_cursor(arguments.before)
    searching = search_mail(query, database.dialect, arguments.limit, before, principal.account_id)
    page = await call.services.searches.run(database, searching)
    await _note(call, "mail.search", "account", str(principal.account_id or "all"), found=len(page.found))
    return {
        "messages": [_found(each) for each in page.found],
        "next_before": None if page.following is None else str(page.following),
        "indexing": page.is_indexing,
    }


def _found(mail: FoundMail) -> forms.FoundForm:
    return {
        "message_id": str(mail.id),
        "account": mail.account,
        "date": time_text(mail.sent_at),
        "labels": system_labels(mail.labels),
        "untrusted": {
            "from": mail.sender,
            "subject": mail.subject,
            "snippet": mail.excerpt,
            "labels": own_labels(mail.labels),
        },
    }


async def read(call: Call, arguments: forms.ReadArguments) -> forms.ReadAnswer:
    mail = await call.services.database.run(read_mail(arguments.message_id, call.principal.account_id))
    await _note(call, "mail.read", "message", str(mail.id), level=arguments.level)
    return {
        "message_id": str(mail.id),
        "account": mail.account,
        "date": time_text(mail.sent_at),
        "labels": system_labels(mail.labels),
        "kept": "metadata" if mail.ingestion_tier == "metadata" else "full",
        "gone": mail.is_gone,
        "level": arguments.level,
        "untrusted": _content(mail, arguments.level),
    }


def _content(mail: ReadMail, level: Literal["headers", "text"]) -> forms.UntrustedMail:
    """The content of a message. Headers are cut like text: a hostile message may have a megabyte of them."""
    headers, room = list[list[str]](), LONGEST_TEXT
    for name, value in mail.headers:
        room -= len(name) + len(value)
        if room < 0:
            break
        headers.append([name, value])
    return {
        "from": mail.sender,
        "to": list(recipients(mail.headers))[:MOST_EXPLAINED],
        "subject": mail.subject,
        "labels": own_labels(mail.labels),
        "headers": headers,
        "text": mail.text if level == "text" else None,
        "cut": room < 0 or (level == "text" and mail.is_cut),
    }


async def propose(call: Call, arguments: forms.ProposeArguments) -> forms.ProposeAnswer:
    """Propose an action as an agent, whatever the caller's role: nothing sent here counts as the user's own request."""
    _check_storable(arguments.parameters)
    await call.services.database.run(check_message(arguments.message_id, call.principal.account_id))
    proposed = _agent_service(call).propose(
        arguments.message_id, arguments.action, arguments.parameters, arguments.why, _signed(call)
    )
    try:
        outcome = await proposed
    except SafetyRefused:
        after = {"refused": arguments.action}
        entry = _signed(call).under("action.ask", "message", str(arguments.message_id), after=after)
        await call.services.database.run(record_audit(entry, call.services.clock()))
        raise
    return {
        "action_id": str(outcome.action_id),
        "state": outcome.state,
        "reasons": list(outcome.ruling.reasons),
    }


def _check_storable(parameters: Mapping[str, Any]) -> None:
    try:
        storable = "\\u0000" not in json_text(parameters)
    except BadInput:
        storable = False
    if not storable:
        raise BadInput("parameters", "contain something that is not text", "send text, numbers and lists of them")


async def actions_list(call: Call, arguments: forms.ActionsListArguments) -> forms.ActionsListAnswer:
    before = NEWEST if arguments.before is None else read_cursor(arguments.before)
    listing = list_actions(
        arguments.limit + 1,
        account_id=call.principal.account_id,
        state=arguments.state,
        before=before.at,
        before_id=before.id,
    )
    found = await call.services.database.run(listing)
    page = found[: arguments.limit]
    await _note(call, "actions.list", "actions", arguments.state or "all")
    last = page[-1] if len(found) > len(page) else None
    return {
        "actions": [_action(call, each) for each in page],
        "next_before": None if last is None else str(Cursor(last.created_at, last.id)),
    }


def _action(call: Call, view: ActionView) -> forms.ActionForm:
    possible = why_not_undoable(view.action_type, view.state, view.undo_hint) is None
    return {
        "action_id": str(view.id),
        "message_id": str(view.message_id),
        "action": view.action_type,
        "state": view.state,
        "actor": view.actor,
        "yours": view.asked_by == call.principal.actor,
        "reasons": list(view.safety.get("reasons", ())),
        "reversible": possible and view.undone in (None, "failed", "canceled"),
        "undone": view.undone,
        "created_at": time_text(view.created_at),
        "executed_at": None if view.executed_at is None else time_text(view.executed_at),
        "expires_at": None if view.expires_at is None else time_text(view.expires_at),
        "untrusted": {
            "from": view.sender,
            "subject": view.subject,
            "parameters": _without_texts(view.parameters),
            "rule": view.rule_name,
            "why": view.rationale,
            "error": view.error,
        },
    }


def _without_texts(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in _TEXTS}


async def undo(call: Call, arguments: forms.UndoArguments) -> forms.UndoAnswer:
    try:
        state = await _agent_service(call).undo(arguments.action_id, call.principal.account_id, _signed(call))
    except SafetyRefused:
        entry = _signed(call).under("action.undo", "action", str(arguments.action_id), after={"refused": True})
        await call.services.database.run(record_audit(entry, call.services.clock()))
        raise
    return {"action_id": str(arguments.action_id), "state": cast("Any", state)}


async def explain(call: Call, arguments: forms.ExplainArguments) -> forms.ExplainAnswer:
    database, id = call.services.database, arguments.message_id
    await database.run(check_message(id, call.principal.account_id))
    decided = await database.run(decisions_about(id))
    done = await database.run(list_actions(MOST_EXPLAINED, message_id=id))
    await _note(call, "decisions.explain", "message", str(id))
    return {
        "message_id": str(id),
        "decisions": [_decision(each) for each in decided[:MOST_EXPLAINED]],
        "actions": [_action(call, each) for each in done],
    }


def _decision(view: DecisionView) -> forms.DecisionForm:
    decision, safety = view.decision, view.decision.safety or {}
    return {
        "decision_id": str(decision.id),
        "source": decision.source,
        "action": decision.action_type,
        "confidence": decision.confidence,
        "verdict": safety.get("verdict"),
        "reasons": list(safety.get("reasons", ())),
        "shadow": decision.shadow,
        "generation": decision.generation,
        "model": decision.model,
        "created_at": time_text(view.created_at),
        "untrusted": {
            "rule": decision.rule_name,
            "parameters": _without_texts(decision.parameters),
            "why": decision.rationale,
        },
    }


async def pause(call: Call, arguments: forms.PauseArguments) -> forms.StoppedAnswer:
    services, signed = call.services, _signed(call, arguments.reason)
    stopped = await pause_changes(services.database, arguments.account, arguments.reason, signed, services.clock)
    shown = _pause(stopped.pause, await _addresses(call))
    return {**shown, "on_wire": stopped.on_wire, "silent_processes": stopped.silent}


async def resume(call: Call, arguments: forms.ResumeArguments) -> forms.ResumeAnswer:
    released = await resume_changes(call.services.database, arguments.account, _signed(call), call.services.clock)
    return {"was_paused": released is not None, "jobs_released": released or 0}


async def status(call: Call, arguments: NoArguments) -> forms.StatusAnswer:
    standing = await call.services.database.run(pauses.standing_pauses())
    accounts = await _addresses(call)
    return {
        "paused": any(each.scope == pauses.ALL for each in standing),
        "pauses": [_pause(each, accounts) for each in standing],
    }


def _pause(pause: pauses.Pause, accounts: Mapping[str, str]) -> forms.PauseForm:
    account = None if pause.scope == pauses.ALL else accounts.get(pause.scope, pause.scope)
    return {"account": account, "reason": pause.reason, "set_by": pause.set_by, "since": time_text(pause.since)}


async def _addresses(call: Call) -> dict[str, str]:
    """The addresses of all accounts, by the scopes of their pauses."""
    return {str(each.id): each.email for each in await list_accounts(call.services.database)}


def _agent_service(call: Call) -> Agents:
    if call.services.agents is None:
        raise Refused("this server only ingests mail; it does not act on it")
    return call.services.agents


def _signed(call: Call, reason: str | None = None) -> Signature:
    return signature(call.principal.actor, call.principal.role, reason)


async def _note(call: Call, action: str, object_type: str, object_id: str, **after: object) -> None:
    """Audit what was read. Repeated reads are written once a minute, with their number."""
    what = (call.principal.actor, action, object_id, str(after.get("level", "")))
    repeated = call.services.looks.since_last(what, call.services.clock())
    if repeated is None:
        return
    details = {**after, "repeated": repeated} if repeated else after
    entry = _signed(call).under(action, object_type, object_id, after=details or None)
    await call.services.database.run(record_audit(entry, call.services.clock()))
