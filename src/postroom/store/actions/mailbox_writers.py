"""Decides which requests that change a mailbox may be sent, and which processes may send any.

A process sends requests under a grant, which it renews in a transaction that registers the process and reads the
generation of pauses. Pausing raises the generation first, so either it finds the process registered, or the process
finds the new generation. `MailboxGate` keeps the grant short; `pausing` waits for the processes that had one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import action_hash
from postroom.core.actions.permits import Permit
from postroom.core.actions.safety import Protected
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked, PostroomError, ProtectedMail
from postroom.core.mail.account_repair import parked_words, reactivate_command
from postroom.core.mail.accounts import parking_key
from postroom.store.actions.protection import protected_now
from postroom.store.engine.codecs import as_uuid, from_json, json_text, rows_text
from postroom.store.engine.database import Notify, Rows, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.jobs import PAUSE

CHANNEL = "departures"


class MailboxWriter(NamedTuple):
    """A process that may send requests: the generation it has read, and its requests in flight, by account."""

    process_id: UUID
    generation: int
    on_wire: Mapping[str, int]


@transaction
def register_writer(
    process_id: UUID, holder: str, on_wire: Mapping[str, int], held: int | None, now: datetime
) -> Script[int]:
    """Register this process, so that pausing waits for it. Return the generation of pauses.

    A process that still sends requests under a generation passes it as `held`. If that generation is over, nothing is
    written: the process first has to stop, and to confirm that by registering without one.
    """
    yield sql("await_no_pause")
    generation = yield from pause_generation.script()
    if held is None or held == generation:
        yield sql("upsert_departures", process_id, holder, generation, json_text(dict(on_wire)), now)
        yield Notify(CHANNEL, str(generation))
    return generation


@transaction
def retire_writer(process_id: UUID) -> Script[None]:
    """Unregister this process: it sends nothing until it registers again."""
    yield sql("delete_departures", process_id)
    yield Notify(CHANNEL, "retired")


@query
def pause_generation() -> Script[int]:
    """How often anything was paused or resumed."""
    rows = yield sql("select_pause_generation")
    return rows[0][0] if rows else 0


@query
def registered_writers() -> Script[list[MailboxWriter]]:
    rows = yield sql("select_departures")
    return read_rows(MailboxWriter, rows)


@query
def leaving_mails() -> Script[int]:
    """How many mails are leaving by SMTP: their content has been let go, and no outcome is known yet."""
    return (yield sql("count_leaving_mails"))[0][0]


@transaction
def forget_silent_writers(generation: int) -> Script[int]:
    """Remove processes that did not answer while their grants lasted, and so have none any more. Return how many."""
    return len((yield sql("delete_silent_departures", generation)))


@dataclass(frozen=True, slots=True)
class PermitCheck:
    """The result of checking several permits, by index.

    `wants_labels` are permits whose message's labels must be read first, with the message's id in its mailbox;
    `unknown_labels` are accounts whose list of labels must be read first.
    """

    generation: int
    refused: Mapping[int, PostroomError]
    wants_labels: Mapping[int, str]
    unknown_labels: frozenset[UUID]
    protects_labels: bool


@query
def check_permits(
    permits: Sequence[Permit], labels: Mapping[str, frozenset[str] | None], listed: frozenset[UUID]
) -> Script[PermitCheck]:
    """Check whether each request may be sent now. `labels` are those just read, by message id, None for a message that
    is gone; `listed` are accounts whose labels were just listed, so that a missing id names no label.
    """
    generation = yield from pause_generation.script()
    pauses = {scope: reason for scope, reason, *_ in (yield sql("select_pauses"))}
    rows = yield sql("select_departing", rows_text([_permit_row(*each) for each in enumerate(permits)]))
    refused: dict[int, PostroomError] = {}
    wanted: dict[int, str] = {}
    unknown: set[UUID] = set()
    protection: dict[UUID, _Protection] = {}
    for place, (permit, row) in enumerate(zip(permits, rows.by_name(), strict=True)):
        if (error := _refusal(permit, row, pauses)) is not None:
            refused[place] = error
        elif permit.action_id is not None and not permit.gives_back:
            account_id = permit.account_id
            if account_id not in protection:
                protection[account_id] = yield from _protection(account_id)
            message = _Message(row["provider_message_id"], row["sender"], frozenset(from_json(row["labels_json"])))
            match protection[account_id].judge(message, labels, account_id in listed):
                case ProtectedMail() as error:
                    refused[place] = error
                case "labels":
                    wanted[place] = message.provider_id
                case "names":
                    unknown.add(account_id)
                case None:
                    pass
    protects_labels = any(each.protected.names_labels for each in protection.values())
    return PermitCheck(generation, refused, wanted, frozenset(unknown), protects_labels)


class _Message(NamedTuple):
    provider_id: str
    sender: str
    stored_labels: frozenset[str]


class _Protection(NamedTuple):
    """Everything protected in one mailbox, and the names of its labels, by id."""

    protected: Protected
    names: Mapping[str, str]

    def judge(
        self, message: _Message, read: Mapping[str, frozenset[str] | None], is_listed: bool
    ) -> ProtectedMail | Literal["labels", "names"] | None:
        """Why the message must not be touched, or what must be read first: its labels, or the names of all labels."""
        labels = self.protected.names_labels
        if labels and message.provider_id not in read:
            return "labels"
        # A message that is gone has no labels; its last known ones are used.
        fresh = read.get(message.provider_id)
        held = message.stored_labels if fresh is None else fresh
        names = {self.names[id].casefold() for id in held & self.names.keys()}
        if (reason := self.protected.reason(message.sender, held | names)) is not None:
            return ProtectedMail(reason)
        # Gmail's own labels have ids in capitals and keep their names; others may have been renamed just now.
        return "names" if labels and not is_listed and any(not id.isupper() for id in held) else None


def _protection(account_id: UUID) -> Script[_Protection]:
    protected = yield from protected_now(account_id)
    known = (yield sql("select_labels", account_id)) if protected.names_labels else Rows()
    return _Protection(protected, {id: name for id, name, *_ in known})


def _permit_row(place: int, permit: Permit) -> tuple[object, ...]:
    claim = permit.claim or (None, None, None)
    hold = permit.delivery or (None, None)
    return (place, permit.account_id, *claim, *hold, permit.action_id)


def _refusal(permit: Permit, row: Mapping[str, Any], pauses: Mapping[str, str]) -> PostroomError | None:
    """Why the request must not be sent, apart from protection; None if it may be."""
    for scope in ("all", str(permit.account_id)):
        if scope in pauses:
            return Parked(f"{PAUSE}{scope}", f"Postroom is paused: {pauses[scope]}; `postroom resume` continues")
    state, email = row["account_state"], row["email"]
    if state in ("paused", "needs_consent"):
        why = row["state_reason"] or f"run `{reactivate_command(state, email, None, row['provider'])}`"
        return Parked(parking_key(permit.account_id), parked_words(email, state, why))
    if state != "active":
        return Fatal("the account was removed; connect it again with `postroom account add`")
    if (permit.claim and row["job_seq"] is None) or (permit.delivery and row["delivery_id"] is None):
        return LeaseLost("the work was taken over by another process; this one changes nothing")
    if row["cancel_requested"]:
        return Canceled("it was canceled on request")
    if permit.action_id is None:
        return None
    if row["action_state"] != "executing":
        return Canceled(f"action {permit.action_id} was ended before the request was sent; it is {row['action_state']}")
    if row["approved_by"] is not None:
        stands = action_hash(as_uuid(row["message_id"]), row["action_type"], from_json(row["parameters_json"]))
        if row["action_hash"] != stands:
            return Fatal(f"action {permit.action_id} is not what was approved: it was changed afterwards")
    return None
