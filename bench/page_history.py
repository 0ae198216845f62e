"""A long history for the pages, as SQL that fills either database: months of mail, events, jobs and outgoing mail.

Every row follows from its number alone, so that the same size gives the same history. The counts by hour of what comes
in are summed up from the rows that they count. Those of outgoing mail are denser than the mails that are listed: in
every hour, half of all senders were served, as with senders who use the queue all day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

DAYS, KEPT_DAYS, FIGURE_DAYS = 90, 30, 35
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
ACCOUNTS, RULES, TENANTS, SENTENCES = 20, 60, 1_000, 500
SENDERS = 2 * TENANTS
PERSON_ADDRESS = "'p' || p || '@d' || (p % 300) || '.example'"
BEGAN_MS = 1_700_000_000_000
_TIER = "CASE WHEN a = 0 THEN 'high_priority' WHEN a < 4 THEN 'interactive' ELSE 'default' END"
_EVENT_TIER = "CASE WHEN a < 5 THEN 'P0' ELSE 'P1' END"
_SOURCE = "CASE WHEN s < 6 THEN 'deterministic' WHEN s < 9 THEN 'llm' ELSE 'none' END"
_ACTION = (
    "CASE WHEN s = 9 OR d > 7 THEN 'none' WHEN d < 4 THEN 'archive' WHEN d < 6 THEN 'apply_label' "
    "WHEN d < 7 THEN 'mark_read' ELSE 'trash' END"
)
_PARAMETERS = "CASE WHEN s < 9 AND d IN (4, 5) THEN '{\"label\": \"Receipts\"}' ELSE '{}' END"
_JOB_TYPE = (
    "CASE WHEN j < 9 THEN 'classify' WHEN j < 16 THEN 'action.gmail' WHEN j < 18 THEN 'outbound.send' "
    "WHEN j < 19 THEN 'approval.notify' ELSE 'labels.sync.gmail' END"
)


@dataclass(frozen=True)
class Span:
    """Messages from `first` to `last` of a history of `count`, which began at `start_ms` with one every `step_ms`."""

    count: int
    start_ms: int
    step_ms: int
    first: int
    last: int

    @property
    def is_whole(self) -> bool:
        return self.first == 1

    @property
    def since_hour_ms(self) -> int:
        """The hour of the first message: from it on, the counts are made anew."""
        return 0 if self.is_whole else (self.start_ms + self.first * self.step_ms) // HOUR_MS * HOUR_MS

    @property
    def until_ms(self) -> int:
        return self.start_ms + self.last * self.step_ms


class Fill(NamedTuple):
    """A statement that fills a table."""

    table: str
    sql: str


def chance(salt: int, of: int, number: str = "n") -> str:
    """A number under `of` that looks like chance, and follows from the row's number."""
    return f"((({number} + {salt * 1_000_003}) * 2654435761 % 4294967296) / 65536 % {of})"


def base(span: Span, series: str) -> str:
    """The rows of the span, each with its moment and its chances."""
    chances = f"{chance(1, 10)} AS a, {chance(3, 2000)} AS p, {chance(4, 10)} AS s, {chance(6, 10)} AS d"
    more = f"{chance(7, 1000)} AS x, {chance(9, 20)} AS j, {chance(10, 200)} AS e, {chance(11, 4000)} AS w"
    moment = f"{span.start_ms} + n * {span.step_ms} AS ms, n % {ACCOUNTS} AS k"
    return f"(SELECT n, {moment}, {chances}, {more} FROM {series}) AS b"


_PERSON_WORDS = """to_tsvector('simple', 'p' || p || ' d' || (p % 300) || ' example Person ' || p || ' p' || p || ' d'
    || (p % 300) || ' example')"""
_GAP = "''' '':1'::tsvector"
_OWN_WORD = "to_tsvector('simple', 'ref' || n)"
_WORDS = f"""{_PERSON_WORDS} || {_GAP} || f.vector || {_OWN_WORD} || {_GAP} || f.vector || g.vector || h.vector,
    setweight({_PERSON_WORDS}, 'A') || {_GAP} || setweight(to_tsvector('simple', 'm' || k || ' team example'), 'B')
    || {_GAP} || setweight(f.vector || {_OWN_WORD}, 'C')"""
"""The words of a message as PostgreS'L's trigger finds them, put together from its sentences: that is far faster."""


def mail(span: Span, rows: str, *, with_words: bool) -> Iterator[Fill]:
    account, own = f"made_id(1, {BEGAN_MS}, k)", "made_id({kind}, ms, n)"
    message, decision, action = (own.format(kind=kind) for kind in (3, 5, 6))
    yield Fill(
        "threads",
        f"""INSERT INTO threads (id, account_id, provider_thread_id, subject, last_message_at, created_at, updated_at)
        SELECT made_id(2, {BEGAN_MS}, n), {account}, 't' || n, 'A thread', at(ms), at(ms), at(ms) FROM {rows}
        WHERE n % 3 = 0 ON CONFLICT DO NOTHING""",
    )
    headers = (
        f"""'[["From", "Person ' || p || ' <' || {PERSON_ADDRESS} || '>"], ["To", "m' || k || '@team.example"],"""
        """ ["Subject", "' || f.words || ' ref' || n || '"], ["Message-ID", "<' || n || '@d.example>"]]'"""
    )
    yield Fill(
        "messages",
        f"""INSERT INTO messages (id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, policy_tier,
            sender, subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, created_at,
            updated_at,
            accepted_seq, size_bytes, attachments_json, reply_to_mine{", words, head_words" if with_words else ""})
        SELECT {message}, {account}, made_id(2, {BEGAN_MS}, (n + 2) / 3 * 3), {own.format(kind=4)}, 'm' || n, 'full',
            {_TIER}, {PERSON_ADDRESS}, f.words || ' ref' || n, doc({headers}), doc('["INBOX"]'), f.words,
            f.words || ' ' || g.words || ' ' || h.words, x % 10 = 0, at(ms - 2000), at(ms), at(ms), 2 * n, 4000 + x,
            '[]', x % 5 = 0{f", {_WORDS}" if with_words else ""}
        FROM {rows} JOIN page_sentences f ON f.number = n % 499 JOIN page_sentences g ON g.number = n % 491
            JOIN page_sentences h ON h.number = n % 487 ORDER BY n""",
    )
    if with_words:
        yield Fill(
            "message_header_ids",
            f"""INSERT INTO message_header_ids (header_id, message_id)
            SELECT '<' || n || '@d.example>', {message} FROM {rows}""",
        )
    yield Fill(
        "decisions",
        f"""INSERT INTO decisions (id, account_id, message_id, source, rule_id, rule_name, action_type, parameters_json,
            confidence, needs_approval, rationale, safety_json, model, prompt_version, created_at)
        SELECT {decision}, {account}, {message}, {_SOURCE}, CASE WHEN s < 6 THEN made_id(9, {BEGAN_MS},
            n % {RULES}) END,
            CASE WHEN s < 6 THEN 'Rule ' || (n % {RULES}) END, {_ACTION}, doc({_PARAMETERS}), 0.5 + x / 2000.0,
            s < 9 AND d < 8 AND x < 20, 'it looks like others that were filed', doc('{{}}'),
            CASE WHEN s BETWEEN 6 AND 8 THEN 'model-1' END, CASE WHEN s BETWEEN 6 AND 8 THEN 'p1' END, at(ms + 900)
        FROM {rows} ORDER BY n""",
    )
    recent = f"n > {span.count - span.count // 45}"
    state = (
        f"CASE WHEN x < 20 THEN CASE WHEN {recent} THEN 'approved_pending' WHEN x < 12 THEN 'completed' "
        "WHEN x < 16 THEN 'rejected' ELSE 'expired' END WHEN x < 25 THEN 'failed' ELSE 'completed' END"
    )
    columns = """(id, account_id, message_id, decision_id, actor, action_type, parameters_json, state, action_hash,
        pre_image_json, undo_hint_json, error, approved_by, approved_at, expires_at, executed_at, created_at,
        updated_at,
        rationale, asked_by, started_at)"""
    yield Fill(
        "actions",
        f"""INSERT INTO actions {columns}
        SELECT {action}, {account}, {message}, {decision}, CASE WHEN s < 6 THEN 'rule' ELSE 'model' END, {_ACTION},
            doc({_PARAMETERS}), {state}, 'h' || n, doc('{{"labels": ["INBOX"]}}'), doc('{{"add": ["INBOX"]}}'),
            CASE WHEN x BETWEEN 20 AND 24 THEN 'the mailbox refused it' END, CASE WHEN x < 12 THEN 'mara' END,
            CASE WHEN x < 12 THEN at(ms + 5000) END, CASE WHEN x < 20 THEN at(ms + {2 * DAY_MS}) END,
            CASE WHEN x > 24 THEN at(ms + 1500) END, at(ms + 1000), at(ms + 1600), '', CAST(NULL AS text), at(ms + 1200)
        FROM {rows} WHERE s < 9 AND d < 8 ORDER BY n""",
    )
    yield Fill(
        "actions",
        f"""INSERT INTO actions {columns}
        SELECT {action}, {account}, {message}, NULL, 'user', 'star', doc('{{}}'), 'completed', 'h' || n, NULL,
            doc('{{}}'), NULL, NULL, NULL, NULL, at(ms + 60500), at(ms + 60000), at(ms + 60500), '', 'mara',
            at(ms + 60200)
        FROM {rows} WHERE d > 7 AND x < 50""",
    )
    undone = f"FROM {rows} WHERE s < 9 AND d < 8 AND x BETWEEN 30 AND 39"
    yield Fill(
        "actions",
        f"""INSERT INTO actions {columns}
        SELECT {own.format(kind=7)}, {account}, {message}, NULL, 'undo', 'several', doc('{{}}'), 'completed', 'u' || n,
            NULL, doc('{{}}'), NULL, NULL, NULL, NULL, at(ms + 90500), at(ms + 90000), at(ms + 90500), '', 'mara',
            at(ms + 90200)
        {undone}""",
    )
    yield Fill(
        "action_links",
        f"""INSERT INTO action_links (id, cause_action_id, effect_action_id, relation_type, created_at)
        SELECT {own.format(kind=8)}, {own.format(kind=7)}, {action}, 'undo_of', at(ms + 90000) {undone}""",
    )
    yield Fill(
        "model_calls",
        f"""INSERT INTO model_calls (id, account_id, message_id, provider, model, prompt_version, state, day,
            input_tokens, output_tokens, reserved_micros, cost_micros, latency_ms, started_at, ended_at)
        SELECT {own.format(kind=13)}, {account}, {message}, 'anthropic', 'model-1', 'p1', 'answered', day(ms), 900, 60,
            900, 700, w, at(ms + 100), at(ms + 800) FROM {rows} WHERE s BETWEEN 6 AND 8""",
    )
    yield Fill(
        "backfill_mail",
        f"""INSERT INTO backfill_mail (inbox_id, job_id, message_id, waits, accepted_at)
        SELECT {own.format(kind=4)}, made_id(14, {BEGAN_MS}, n % 300), {message}, n < 0, at(ms) FROM {rows}
        WHERE n % 10 = 0 AND n < {span.count // 3}""",
    )
    yield Fill(
        "audit",
        f"""INSERT INTO audit (id, at, actor, role, action, object_type, object_id, before_json, after_json, reason)
        SELECT {own.format(kind=15)}, at(ms), CASE WHEN a < 7 THEN 'mara' ELSE 'agent ' || a END, 'admin',
            CASE WHEN d < 5 THEN 'action.undo' WHEN d < 9 THEN 'approval.approve' ELSE 'rule.edit' END, 'action',
            'o' || n, NULL, doc('{{"state": "queued"}}'),
            'asked on the page' FROM {rows} WHERE n % 10 = 0 ORDER BY n""",
    )


def arrivals(span: Span, rows: str) -> Iterator[Fill]:
    """Envelopes are kept for a month: of mail, which has ended, and of events for agents, some of which wait."""
    kept = f"n > {span.count - span.count * KEPT_DAYS // DAYS}"
    text = """'{"schema_version": "ingest.v1", "source": {"channel": "' || %s || '", "provider": "' || %s || '",
        "endpoint_identity": "' || %s || '"}, "event": {"external_event_id": "m' || n || '", "observed_at":
        "2026-11-15T08:00:00Z"}, "sender": {"identity": "p' || p || '@d.example"}, "payload": {"raw": {"snippet": "' ||
        f.words || ' ' || f.words || ' ' || f.words || '"}, "normalized_text": "' || f.words || ' ' || n || '"},
        "control": {"policy_tier": "default"}}'"""
    columns = """(seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
        policy_tier, ingestion_tier, envelope_json, members, observed_at, accepted_at)"""
    whose = "'gmail:user:m' || k || '@team.example'"
    sentence = "JOIN page_sentences f ON f.number = n % 499"
    yield Fill(
        "envelopes",
        f"""INSERT INTO envelopes {columns}
        SELECT 2 * n, made_id(4, ms, n), 'email', {_TIER}, 'email', 'gmail', {whose}, 'm' || n, {PERSON_ADDRESS}, NULL,
            {_TIER}, 'full', doc({text % ("'email'", "'gmail'", whose)}), NULL, at(ms), at(ms)
        FROM {rows} {sentence} WHERE {kept} ORDER BY n""",
    )
    yield Fill(
        "inbox_ends",
        f"""INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
        SELECT 2 * n, CASE WHEN x = 999 THEN 'failed' ELSE 'done' END, 1, CASE WHEN x = 999 THEN 'unreadable' END,
            NULL, at(ms + w) FROM {rows} WHERE {kept} ORDER BY n""",
    )
    events, hook = f"{kept} AND n % 5 = 0", "'webhook:deploys'"
    yield Fill(
        "envelopes",
        f"""INSERT INTO envelopes {columns}
        SELECT 2 * n + 1, made_id(10, ms, n), 'gateway', {_EVENT_TIER}, 'webhook', 'webhook', {hook}, 'e' || n, 'bot',
            CASE WHEN d < 5 THEN 'deploy.done' ELSE 'build.failed' END, 'default', 'full',
            doc({text % ("'webhook'", "'webhook'", hook)}), CASE WHEN n % 100 = 0 THEN 2 END, at(ms), at(ms)
        FROM {rows} {sentence} WHERE {events} ORDER BY n""",
    )
    waits = f"n > {span.count - 2_000} AND e < 50"
    ended = "CASE WHEN n % 100 IN (5, 10) THEN 'coalesced' WHEN x < 100 THEN 'auto_acked' ELSE 'done' END"
    summary = f"made_id(10, {span.start_ms} + (n / 100 + 1) * 100 * {span.step_ms}, (n / 100 + 1) * 100)"
    yield Fill(
        "inbox_ends",
        f"""INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
        SELECT 2 * n + 1, {ended}, 1, CASE WHEN {ended} <> 'done' THEN 'waited too long' END,
            CASE WHEN n % 100 IN (5, 10) THEN {summary} END, at(ms + w) FROM {rows} WHERE {events} AND NOT ({waits})""",
    )
    yield Fill(
        "inbox_queue",
        f"""INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
        SELECT 2 * n + 1, made_id(10, ms, n), 'gateway', {_EVENT_TIER}, 'waiting', at(ms) FROM {rows}
        WHERE {events} AND {waits}""",
    )


LIVE_STAGE = "n / 50 % 10"
_PAYLOAD = (
    f'doc(\'{{"account_id": "\' || made_id(1, {BEGAN_MS}, k) || \'", "message_id": "\' || made_id(3, ms, n) || \'"}}\')'
)
_JOB_STATE = "CASE WHEN e = 0 THEN 'failed' WHEN e = 1 THEN 'canceled' ELSE 'completed' END"
_JOB_ERROR = "CASE WHEN e = 0 THEN 'the mailbox answered ' || (500 + d) WHEN e < 8 THEN 'timed out' END"


def jobs(span: Span, rows: str, *, in_one_table: bool) -> Iterator[Fill]:
    """Nearly all have ended; of the newer ones, one in fifty is ready, waits for its time or a retry, or is parked."""
    lives = f"(n % 50 = 0 AND n > {span.count * 7 // 10})"
    ready, sleeps = f"{LIVE_STAGE} < 2", f"{LIVE_STAGE} BETWEEN 2 AND 7"
    attempts = f"CASE WHEN {LIVE_STAGE} IN (6, 7) THEN 2 ELSE 0 END"
    waiting = f"CASE WHEN {sleeps} THEN at(ms + {7 * DAY_MS} + w) END"
    parked = f"CASE WHEN {LIVE_STAGE} > 7 THEN 'pause:all' END"
    error = f"CASE WHEN {LIVE_STAGE} > 5 THEN 'the mailbox answered ' || (500 + d) END"
    own, since = "made_id(11, ms, n)", "at(ms + 1000)"
    body = f"n, {own}, {_JOB_TYPE}, {_PAYLOAD}, 0"
    if in_one_table:
        columns = """(seq, id, type, payload_json, priority, state, ready, attempts, not_before, parked_by, last_error,
            created_at, updated_at, finished_at)"""
        yield Fill(
            "job_rows",
            f"""INSERT INTO job_rows {columns} SELECT {body}, 'queued', {ready}, {attempts}, {waiting}, {parked},
                {error}, {since}, {since}, NULL FROM {rows} WHERE {lives}""",
        )
        yield Fill(
            "job_rows",
            f"""INSERT INTO job_rows {columns} SELECT {body}, {_JOB_STATE}, 0, 1, NULL, NULL, {_JOB_ERROR}, {since},
                at(ms + 1050 + w), at(ms + 1050 + w) FROM {rows} WHERE NOT {lives}""",
        )
    else:
        yield Fill(
            "job_bodies",
            f"""INSERT INTO job_bodies (seq, id, type, payload_json, priority, max_attempts, releases_key, created_at)
            SELECT {body}, 5, false, {since} FROM {rows} ORDER BY n""",
        )
        yield Fill(
            "job_ends",
            f"""INSERT INTO job_ends (seq, state, attempts, last_error, finished_at)
            SELECT n, {_JOB_STATE}, 1, {_JOB_ERROR}, at(ms + 1050 + w) FROM {rows} WHERE NOT {lives} ORDER BY n""",
        )
        yield Fill(
            "job_queue",
            f"""INSERT INTO job_queue (seq, priority, state, ready, attempts, max_attempts, not_before, parked_by,
                last_error, updated_at)
            SELECT n, 0, 'queued', {ready}, {attempts}, 5, {waiting}, {parked}, {error}, {since}
            FROM {rows} WHERE {lives} ORDER BY n""",
        )
    yield Fill(
        "job_steps",
        f"""INSERT INTO job_steps (id, job_id, attempt, kind, name, started_at, finished_at, result_json)
        SELECT made_id(12, ms, n), {own}, 1, 'step', 'work', at(ms + 1010), at(ms + 1040 + w), doc('{{}}')
        FROM {rows} WHERE n % 2 = 0 AND NOT {lives}""",
    )
