"""The states in the CHECK constraints of the schema are those of the lifecycles in `core`."""

import re
from enum import StrEnum
from typing import Any, Literal, get_args

import apsw
import asyncpg
import pytest

from postroom.core.actions.action import Actor
from postroom.core.actions.safety import ProtectedKind, ShadowKind
from postroom.core.backfill.job import BackfillMode
from postroom.core.budget_shares import ShareKind
from postroom.core.errors import ConstraintBroken
from postroom.core.lifecycle import (
    BACKFILL,
    INBOX,
    JOB,
    LIFECYCLES,
    AccountState,
    ActionState,
    BackfillStatus,
    DeliveryState,
    InboxState,
    JobState,
    ModelCallState,
    ProposalState,
    RecipientState,
    RequestState,
)
from postroom.core.mail.contacts import ContactSource
from postroom.core.mail.ingestion import Extent
from postroom.core.mail.mailbox_requests import RequestKind
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.mail.servers import LabelsAs, Security, SignInKind
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.destinations import SigningAlgorithm, StsMode
from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.lanes import Lane
from postroom.core.outbound.priority import SenderLane
from postroom.core.queue.envelope import IngestionTier, PolicyTier
from postroom.core.rules.rule import DecisionSource, RuleMode, ScopeName
from postroom.core.visitors import PersonRole
from postroom.mailboxes.gmail.scopes import Level
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.installation.timeline import NoticedBy
from postroom.store.intake.ingestion_rules import Origin
from postroom.store.outbound.outbound import MailKind, MessageClass
from postroom.store.outbound.outbound_attempts import AttemptOutcome
from postroom.store.outbound.outbound_figures import TimedDiscipline, TimedLane, TimeMeasure
from postroom.store.outbound.outbound_results import DeliveryResult
from postroom.store.outbound.senders import SenderState, ThrottleCause
from postroom.store.outbound.suppressions import SuppressionCause
from postroom.store.outbound.tenants import TenantState
from support.store.job_setup import JobSetup

# States that a person sets as they like, or a connector says of itself: they have no moves, and so no lifecycle.
FREE = {"accounts", "connectors", "senders", "tenants"}
# A lifecycle whose states are spread over several tables: together they hold all of them.
SPREAD = {"job_queue": JOB, "job_ends": JOB, "inbox_queue": INBOX, "inbox_ends": INBOX}
_SQLITE_CHECK = re.compile(r"\b(?:state|status) TEXT[^,(]*CHECK \((?:state|status) IN \(([^)]*)\)\)", re.IGNORECASE)
_POSTGRES_CHECK = re.compile(r"^CHECK \(\((?:state|status) = ANY \(ARRAY\[([^\]]*)\]")
_WORD = re.compile(r"'([\w-]+)'")


async def _states_by_table(setup: JobSetup) -> dict[str, frozenset[str]]:
    if isinstance(setup.database, SqliteDatabase):
        return _sqlite_states(setup.database)
    assert isinstance(setup.database, PostgresDatabase)
    return await _postgres_states(setup.database._url)


def _sqlite_states(database: SqliteDatabase) -> dict[str, frozenset[str]]:
    connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    found: dict[str, frozenset[str]] = {}
    for name, text in tables:
        has_state = re.search(r"^\s*(state|status) ", text or "", re.MULTILINE)
        match = _SQLITE_CHECK.search(text or "")
        assert (match is not None) == (has_state is not None), f"{name} has states and no CHECK on them"
        if match is not None:
            found[name] = frozenset(_WORD.findall(match[1]))
    return found


async def _postgres_states(url: str) -> dict[str, frozenset[str]]:
    connection = await asyncpg.connect(url)
    constraints = await connection.fetch(
        "SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE k.contype = 'c' AND n.nspname IN ('postroom', 'switchboard')"
    )
    columns = await connection.fetch(
        "SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r' "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE a.attname IN ('state', 'status') AND n.nspname IN ('postroom', 'switchboard')"
    )
    await connection.close()
    found: dict[str, frozenset[str]] = {}
    for name, text in constraints:
        if match := _POSTGRES_CHECK.search(text):
            found[name] = frozenset(_WORD.findall(match[1]))
    assert {name for (name,) in columns} == set(found), "a table has states and no CHECK on them"
    return found


async def test_every_table_with_states_has_those_of_one_lifecycle(setup: JobSetup) -> None:
    found = await _states_by_table(setup)
    assert found
    spread: dict[str, frozenset[str]] = {}
    for table, states in found.items():
        if table in SPREAD:
            lifecycle = SPREAD[table]
            assert not states & spread.get(lifecycle.name, frozenset()), f"{table} repeats a state of another table"
            spread[lifecycle.name] = spread.get(lifecycle.name, frozenset()) | states
        elif table not in FREE:
            assert states in [lifecycle.states for lifecycle in LIFECYCLES], f"{table}: {sorted(states)}"
    for lifecycle in SPREAD.values():
        if lifecycle.name in spread:
            assert spread[lifecycle.name] == lifecycle.states


async def test_both_databases_have_the_same_states(setup: JobSetup, sqlite_setup: JobSetup) -> None:
    """Also those that no lifecycle knows; and jobs are among them."""
    found, ours = await _states_by_table(setup), await _states_by_table(sqlite_setup)
    jobs = frozenset[str]().union(*(found.pop(name, frozenset()) for name in ("job_rows", "job_queue", "job_ends")))
    assert jobs == ours.pop("job_rows") == JOB.states
    assert found == ours


@pytest.mark.parametrize(
    "change",
    [
        "state = 'lost'",
        "state = 'running'",
        "attempts = 99",
        "attempts = -1",
    ],
)
async def test_the_schema_itself_refuses_a_job_that_cannot_be(setup: JobSetup, change: str) -> None:
    await setup.enqueue()
    table = "job_rows" if setup.database.dialect == "sqlite" else "job_queue"

    @transaction
    def break_it() -> Script[None]:
        yield Text(f"UPDATE {table} SET {change}")

    with pytest.raises(ConstraintBroken):
        await setup.database.run(break_it())


# The closed lists of `core`, and of the few modules that own one alone, by the columns that hold their words.
LISTS: dict[str, Any] = {
    "accepted_days.level": Literal["sender", "domain"],
    "accounts.state": AccountState,
    "action_links.relation_type": Literal["undo_of", "approval_for", "spawned", "related"],
    "actions.actor": Actor,
    "backfill_jobs.status": BackfillStatus,
    "backfill_runs.mode": BackfillMode,
    "connector_requests.kind": RequestKind,
    "connectors.state": Literal["healthy", "degraded", "error"],
    "consents.level": Level,
    "contacts.source": ContactSource,
    "credentials.field": Literal["refresh_token", "password", "smtp_password"],
    "decisions.source": DecisionSource,
    "directions.scope": Literal["global", "account"],
    "ingestion_rules.origin": Origin,
    "ingestion_rules.tier": Extent,
    "job_steps.kind": Literal["step", "event"],
    "labels.kind": Literal["system", "user"],
    "mail_servers.imap_security": Security,
    "mail_servers.labels_as": LabelsAs,
    "mail_servers.sign_in": SignInKind,
    "mail_servers.smtp_security": Security,
    "model_rules.mode": RuleMode,
    "model_rules.scope": ScopeName,
    "dkim_keys.algorithm": SigningAlgorithm,
    "mta_sts_policies.mode": StsMode,
    "messages.sender_doubt": SenderDoubt,
    "model_waits.kind": ShareKind,
    "outbound_attempts.outcome": AttemptOutcome,
    "outbound_mail.discipline": Discipline,
    "outbound_mail.kind": MailKind,
    "outbound_mail.message_class": MessageClass,
    "outbound_recipients.bounce_class": BounceClass,
    "outbound_results.bounce_class": BounceClass,
    "outbound_results.result": DeliveryResult,
    "outbound_service.discipline": Discipline,
    "outbound_times.discipline": TimedDiscipline,
    "outbound_times.lane": TimedLane,
    "outbound_times.measure": TimeMeasure,
    "suppressions.cause": SuppressionCause,
    "people.role": PersonRole,
    "protected.kind": ProtectedKind,
    "restores.noticed_by": NoticedBy,
    "rollups.measure": Literal[
        "accepted", "duplicate", "wait", "ended", "decision", "rule", "override", "job", "outcome"
    ],
    "rules.mode": RuleMode,
    "rules.scope": ScopeName,
    "sender_throttles.ended_by": ThrottleCause,
    "sender_throttles.started_by": ThrottleCause,
    "outbound_turns.lane": Lane,
    "outbound_turns.level": Literal["root", "lane", "tenant", "domain", "sender"],
    "senders.queue_lane": SenderLane,
    "senders.state": SenderState,
    "shadows.kind": ShadowKind,
    "tenants.state": TenantState,
    "tokens.role": Literal["connector", "dashboard", "agent", "admin", "sender", "metrics"],
}
EVERYWHERE: dict[str, Any] = {"ingestion_tier": IngestionTier, "policy_tier": PolicyTier}
_SQLITE_LIST = re.compile(r"CHECK \((\w+) IN \(('[^)]*)\)\)")
_POSTGRES_LIST = re.compile(r"CHECK \(\((\w+) = ANY \(ARRAY\[([^\]]*)\]")


def words_of(form: Any) -> frozenset[str]:
    if isinstance(form, type) and issubclass(form, StrEnum):
        return frozenset(form)
    return frozenset(word for each in get_args(form) for word in (get_args(each) or (each,)))


async def _lists(setup: JobSetup) -> dict[str, frozenset[str]]:
    """The words that a column may hold, for every column that has a list of them; states apart."""
    if isinstance(setup.database, SqliteDatabase):
        connection = apsw.Connection(str(setup.database.path), flags=apsw.SQLITE_OPEN_READONLY)
        texts = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        connection.close()
        found = [(name, match) for name, text in texts for match in _SQLITE_LIST.finditer(text)]
    else:
        assert isinstance(setup.database, PostgresDatabase)
        server = await asyncpg.connect(setup.database._url)
        rows = await server.fetch(
            "SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE k.contype = 'c' AND n.nspname IN ('postroom', 'switchboard')"
        )
        await server.close()
        found = [(name, match) for name, text in rows if (match := _POSTGRES_LIST.search(text)) is not None]
    return {f"{name}.{match[1]}": frozenset(_WORD.findall(match[2])) for name, match in found}


async def test_every_list_of_words_in_the_schema_is_the_one_that_the_code_has(setup: JobSetup) -> None:
    found = await _lists(setup)
    for place, words in found.items():
        column = place.split(".")[1]
        if column == "state" and place not in LISTS:
            continue  # those of a lifecycle, see above
        assert words == words_of(LISTS.get(place) or EVERYWHERE[column]), place
    assert LISTS.keys() <= found.keys()


def test_the_states_of_each_lifecycle_are_those_of_its_type() -> None:
    types = (
        JobState,
        ActionState,
        InboxState,
        DeliveryState,
        RecipientState,
        AccountState,
        RequestState,
        ModelCallState,
        ProposalState,
    )
    assert {words_of(each) for each in types} == {each.states for each in LIFECYCLES if each is not BACKFILL}
