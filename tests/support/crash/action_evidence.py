"""What the mailbox saw and what the database says of each message, and what must be true of both.

The mailbox's own history is the evidence of what was really done; the tables are read past the store.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from postroom.store.engine.codecs import from_json
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from support.crash.action_cases import Case
from support.crash.evidence import Place

SIGNS = {"labelAdded": "+", "labelRemoved": "-"}
CHANGING = ("modify", "trash", "untrash")

Rows = dict[str, list[dict[str, Any]]]


class MailboxRecorder:
    """Sees every change of the mailbox, and every call that may have made one."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.changes: dict[str, list[str]] = defaultdict(list)
        self.calls: dict[str, Counter[str]] = defaultdict(Counter)
        self._mailbox = mailbox
        mailbox.observers.append(self._see)

    def _see(self, change: Change) -> None:
        if change.kind == "messageDeleted":
            self.changes[change.message_id].append("gone")
        elif change.kind in SIGNS:
            names = sorted(self._mailbox.labels.get(each).name for each in change.changed)
            self.changes[change.message_id].append(f"{SIGNS[change.kind]}{' '.join(names)}")

    def beside(self, app: ASGIApp) -> ASGIApp:
        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            *_, before, last = ["", *scope.get("path", "").split("/")]
            if last in CHANGING:
                self.calls[before][last] += 1
            elif scope["method"] == "DELETE" and before == "messages":
                self.calls[last]["delete"] += 1
            await app(scope, receive, send)

        return noting


@dataclass(frozen=True)
class Found:
    """What is left of one case."""

    case: Case
    where: str
    changes: Sequence[str]
    calls: Counter[str]
    rows: Rows

    def check(self, usual: Counter[str]) -> str:
        """Returns how its action ended. `usual` are the calls of a case that nothing happened to."""
        again = self.calls - usual
        assert max(again.values(), default=0) <= 1, self.told(f"was asked for too often, {self.calls}")
        self._has_one_decision()
        self._has_ended()
        action = self._action
        if action["state"] == "failed":
            self._failed_for_a_reason(action)
            return "failed"
        assert self.changes == self.case.seen, self.told("was changed otherwise")
        self._kept_what_was_before(action)
        self._is_undone_once(action)
        self._is_woken_once(action)
        return "completed"

    @property
    def _action(self) -> dict[str, Any]:
        (action,) = [each for each in self.rows["actions"] if each["actor"] != "undo"]
        return action

    def told(self, what: str) -> str:
        return f"case {self.case.number} ({self.case.name}), {self.where}, {what}: {self.changes} {self.rows}"

    def _has_one_decision(self) -> None:
        assert [each["generation"] for each in self.rows["decisions"]] == [1], self.told("was decided otherwise")

    def _has_ended(self) -> None:
        states = {each["state"] for name in ("actions", "jobs") for each in self.rows[name]}
        assert states <= {"completed", "failed", "canceled"}, self.told("has not ended")
        if self.case.kind.tries is None:
            assert {each["state"] for each in self.rows["actions"]} == {"completed"}, self.told("was given up")

    def _failed_for_a_reason(self, action: Mapping[str, Any]) -> None:
        """What it may have done before can be seen in its pre-image."""
        assert action["error"], self.told("failed without a reason")
        assert self._jobs("action.gmail")[0]["state"] == "failed", self.told("failed, and its job did not")
        assert self.changes in ([], self.case.seen), self.told("was changed otherwise")
        assert not self.changes or action["pre_image"] is not None, self.told("forgot what was before")

    def _kept_what_was_before(self, action: Mapping[str, Any]) -> None:
        before = sorted(self.case.kind.labels)
        assert action["pre_image"]["labels"] == before, self.told("has the wrong pre-image")
        assert action["undo_hint"]["pre_labels"] == before, self.told("has the wrong hint")
        names = {"snooze": "unsnooze", "delete": "none", "trash": "restore", "restore": "trash"}
        inverse = names.get(action["action_type"])
        assert inverse in (None, action["undo_hint"]["inverse_action"]), self.told("has the wrong hint")

    def _is_undone_once(self, action: Mapping[str, Any]) -> None:
        undos = [each for each in self.rows["actions"] if each["actor"] == "undo"]
        expected = 1 if self.case.kind.undone else 0
        assert len(undos) == len(self._jobs("undo.action")) == expected, self.told("was undone otherwise")
        linked = [each["effect"] for each in self.rows["links"]]
        assert linked == [action["id"]] * expected, self.told("is linked otherwise")
        for undo in undos:
            reverted = undo["undo_hint"]
            assert sorted(reverted["removed"]) == sorted(action["undo_hint"]["inverse_parameters"]["remove_labels"])
            assert sorted(reverted["added"]) == sorted(action["undo_hint"]["inverse_parameters"]["add_labels"])

    def _is_woken_once(self, action: Mapping[str, Any]) -> None:
        wakes = [(each["id"], each["state"]) for each in self._jobs("unsnooze.gmail")]
        if not self.case.kind.wakes:
            assert wakes == [], self.told("is to be woken")
            return
        state = "canceled" if self.case.kind.undone else "completed"
        assert wakes == [(action["undo_hint"]["unsnooze_job_id"], state)], self.told("was woken otherwise")

    def _jobs(self, type: str) -> list[dict[str, Any]]:
        return [each for each in self.rows["jobs"] if each["type"] == type]


async def rows_by_message(place: Place) -> Mapping[str, Rows]:
    """Everything that stands in the database about each message."""
    found: dict[str, Rows] = defaultdict(lambda: defaultdict(list))
    names = ("id", "actor", "action_type", "state", "error", "pre_image", "undo_hint")
    columns = "message_id, id, actor, action_type, state, error, pre_image_json, undo_hint_json"
    messages: dict[str, str] = {}
    for message, *row in await place.rows(f"SELECT {columns} FROM actions ORDER BY created_at"):
        read = [str(row[0]), *row[1:5], *(None if each is None else from_json(each) for each in row[5:])]
        found[str(message)]["actions"].append(dict(zip(names, read, strict=True)))
        messages[str(row[0])] = str(message)
    for message, generation in await place.rows("SELECT message_id, generation FROM decisions WHERE NOT shadow"):
        found[str(message)]["decisions"].append({"generation": generation})
    for effect in await place.rows("SELECT effect_action_id FROM action_links WHERE relation_type = 'undo_of'"):
        found[messages[str(effect[0])]]["links"].append({"effect": str(effect[0])})
    own_jobs = "SELECT id, type, state, payload_json FROM jobs WHERE type <> 'labels.sync.gmail' ORDER BY seq"
    for id, type, state, payload in await place.rows(own_jobs):
        said = json.loads(payload)
        message = said.get("message_id") or messages[said.get("action_id") or said["original_action_id"]]
        found[message]["jobs"].append({"id": str(id), "type": type, "state": state})
    for id, labels, deleted in await place.rows("SELECT id, labels_json, deleted_at FROM messages"):
        found[str(id)]["messages"].append({"labels": from_json(labels), "deleted": deleted})
    return found
