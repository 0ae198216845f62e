"""The rest of the pages' history: outgoing mail of a thousand tenants, and the counts by hour.

The counts of what came in are summed up from its rows. `made_id`, `at`, `doc`, `day` and `hour_of` are functions that
the fill adds to either database.
"""

from collections.abc import Iterator

from .page_history import DAY_MS, FIGURE_DAYS, HOUR_MS, SENDERS, TENANTS, Fill, Span, chance

_RESULT = (
    "CASE WHEN y < 950 THEN 'sent' WHEN y < 965 THEN 'bounced' WHEN y < 975 THEN 'expired' "
    "WHEN y < 980 THEN 'rejected' WHEN y < 985 THEN 'canceled' ELSE 'sent' END"
)
DESTINATIONS, WAITING = 300, 2_500
OWNERS = f"""
    INSERT INTO tenants (id, name, weight, created_at, updated_at) {{own}}
    SELECT n, 'tenant-' || n, 1 + n % 3, at({{ms}}), at({{ms}}) FROM {{tenants}};
    INSERT INTO sender_domains (id, tenant_id, name, created_at) {{own}}
    SELECT n, n, 't' || n || '.example', at({{ms}}) FROM {{tenants}};
    INSERT INTO senders (id, domain_id, username, addresses_json, plan, abuse_score, throttled_until, throttle_reason,
        first_accepted_at, created_at, updated_at) {{own}}
    SELECT n, (n + 1) / 2, 's' || n || '@t' || ((n + 1) / 2) || '.example',
        '["s' || n || '@t' || ((n + 1) / 2) || '.example"]',
        'standard', CASE WHEN n % 50 = 0 THEN 40 ELSE 0 END, CASE WHEN n % 200 = 0 THEN at({{ms}} + {365 * DAY_MS}) END,
        CASE WHEN n % 200 = 0 THEN 'it bounces' END, at({{ms}}), at({{ms}}), at({{ms}}) FROM {{senders}};
    INSERT INTO suppressions (tenant, address, cause, detail, created_at)
    SELECT 'tenant-' || (1 + n % {TENANTS}), 'gone' || n || '@dest.example', 'bounce', 'user unknown',
        at({{ms}} + n * 60000)
    FROM {{suppressed}};
"""


def outgoing_rows(span: Span, series: str) -> str:
    """Half as many outgoing mails as messages, over the days that figures are kept."""
    step = FIGURE_DAYS * DAY_MS * 2 // span.count
    moment = f"{span.until_ms} - ({span.count // 2} - n) * {step} AS ms"
    chances = f"{chance(12, 1000)} AS y, {chance(13, 50_000)} AS r, {chance(14, DESTINATIONS)} AS t"
    return f"(SELECT n, {moment}, {chances}, 1 + {chance(15, SENDERS)} AS o FROM {series}) AS b"


def outgoing(span: Span, rows: str) -> Iterator[Fill]:
    waits, own = f"n > {span.count // 2 - WAITING}", "made_id(16, ms, n)"
    domain = "'t' || ((o + 1) / 2) || '.example'"
    who = f"'tenant-' || ((o + 1) / 2), {domain}, 's' || o || '@' || {domain}"
    yield Fill(
        "outbound_mail",
        f"""INSERT INTO outbound_mail (id, tenant, domain, username, message_class, envelope_sender, kind, subject,
        state,
            not_before, error, asked_at, admitted_at, updated_at, ended_at, seq, sender_id, ready, message_id,
            discipline)
        SELECT {own}, {who}, 'transactional', 's@t.example', 'submitted', 'Your order ' || n,
            CASE WHEN {waits} THEN 'queued' ELSE {_RESULT} END, at(ms),
            CASE WHEN y BETWEEN 950 AND 980 THEN '550 no' END,
            at(ms), at(ms), at(ms + 3000), CASE WHEN NOT ({waits}) THEN at(ms + 3000) END, n, o, {waits},
            '<' || n || '@t.example>', 'fair' FROM {rows} ORDER BY n""",
    )
    recipients = "(mail_id, position, address, state, attempts, not_before, last_reply, updated_at, bounce_class)"
    for position, which in ((0, "n > 0"), (1, "n % 3 = 0")):
        yield Fill(
            "outbound_recipients",
            f"""INSERT INTO outbound_recipients {recipients}
            SELECT {own}, {position}, 'r' || (r + {position}) || '@dest' || t || '.example',
                CASE WHEN {waits} THEN 'queued' ELSE {_RESULT} END, 1, at(ms), '250 accepted', at(ms + 3000),
                CASE WHEN y BETWEEN 950 AND 964 AND NOT ({waits}) THEN 'hard' END FROM {rows} WHERE {which}""",
        )
    yield Fill(
        "outbound_ready",
        f"""INSERT INTO outbound_ready (seq, mail_id, turn_id, retry, bulk, cost)
        SELECT n, {own}, o, n < 0, n < 0, 1 FROM {rows} WHERE {waits}""",
    )


TURNS = """
    INSERT INTO outbound_turns (lane, level, node_id, parent_id)
    VALUES ('fifo', 'root', 0, 0), ('high', 'lane', 0, 0), ('normal', 'lane', 0, 0), ('low', 'lane', 0, 0),
        ('throttled', 'lane', 0, 0), ('retry', 'lane', 0, 0), ('fifo', 'lane', 0, 0);
    INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT 'normal', 'sender', r.turn_id, s.domain_id, count(*), 1 = 1
    FROM outbound_ready r JOIN senders s ON s.id = r.turn_id GROUP BY r.turn_id, s.domain_id;
    INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT 'normal', 'domain', parent_id, parent_id, count(*), 1 = 1 FROM outbound_turns WHERE level = 'sender'
    GROUP BY parent_id;
    INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT 'normal', 'tenant', node_id, 0, 1, 1 = 1 FROM outbound_turns WHERE level = 'domain';
"""


def figures(since_hour_ms: int, until_ms: int, series: str) -> Iterator[Fill]:
    """The counts of outgoing mail in each hour `n` of a series, of which `since_hour_ms` is the first."""
    hour, hours = "hour", "page_hours"
    yield Fill("page_hours", "DELETE FROM page_hours")
    yield Fill("page_hours", f"INSERT INTO page_hours SELECT n, at({since_hour_ms} + n * {HOUR_MS}) FROM {series}")
    yield Fill(
        "outbound_service",
        f"""INSERT INTO outbound_service (hour, discipline, sender_id, mails, recipients)
        SELECT {hour}, 'fair', s.id, 1 + 100 / (1 + s.id % 97), 2 + 200 / (1 + s.id % 97)
        FROM {hours} CROSS JOIN senders s WHERE (s.id + n) % 2 = 0""",
    )
    yield Fill(
        "sender_hours",
        f"""INSERT INTO sender_hours (sender_id, hour, accepted, delivered, bounced)
        SELECT s.id, {hour}, 1 + 100 / (1 + s.id % 97), 100 / (1 + s.id % 97), CASE WHEN s.id % 50 = 0 THEN 1 ELSE 0 END
        FROM {hours} CROSS JOIN senders s WHERE (s.id + n) % 2 = 0""",
    )
    yield Fill(
        "outbound_results",
        f"""INSERT INTO outbound_results (hour, destination, result, bounce_class, shard, count)
        SELECT {hour}, 'dest' || d.number || '.example', CASE WHEN k.number = 3 THEN 'bounced' ELSE 'sent' END,
            CASE WHEN k.number = 3 THEN 'hard' ELSE '' END, (d.number + n + k.number) % 8, 1 + (d.number * 7 + n) % 40
        FROM {hours} CROSS JOIN page_sentences d CROSS JOIN page_sentences k
        WHERE d.number < {DESTINATIONS} AND (d.number + n) % 3 = 0 AND k.number < 4
            AND (k.number < 3 OR d.number % 4 = 0)""",
    )
    lanes = "CASE l.number WHEN 0 THEN 'high' WHEN 1 THEN 'normal' WHEN 2 THEN 'low' ELSE 'throttled' END"
    yield Fill(
        "outbound_times",
        f"""INSERT INTO outbound_times (hour, measure, discipline, lane, bucket, shard, count, total_us)
        SELECT {hour}, CASE WHEN k.number < 8 THEN 'delivery' ELSE 'wait' END, 'fair', {lanes}, 60 + b.number,
            k.number % 8, 1 + (b.number + n) % 9, 5000000
        FROM {hours} CROSS JOIN page_sentences l CROSS JOIN page_sentences b CROSS JOIN page_sentences k
        WHERE l.number < 4 AND b.number < 20 AND k.number < 9""",
    )
    if until_ms > since_hour_ms + 2 * DAY_MS:
        yield Fill(
            "accepted_days",
            f"""INSERT INTO accepted_days (level, node_id, day, accepted)
            SELECT 'sender', s.id, day({until_ms} - l.number * {DAY_MS}), 100 FROM senders s CROSS JOIN page_sentences l
            WHERE l.number < {FIGURE_DAYS}""",
        )


_WAIT_MS = "CAST(1 + m.accepted_seq * 7919 % 4000 AS bigint)"
_SHARD = "m.accepted_seq / 2 % 8"


def counts(ended_jobs: str) -> Iterator[str]:
    """Statements that sum up the rows since `{since}` into counts by hour."""
    into = "INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)"
    message = "FROM messages m JOIN accounts c ON c.id = m.account_id WHERE m.created_at >= {since}"
    decided = "FROM decisions d JOIN messages m ON m.id = d.message_id WHERE d.created_at >= {since}"
    yield f"""{into} SELECT hour_of(m.created_at), 'accepted', 'email', m.policy_tier, c.endpoint_identity, -1,
        {_SHARD}, count(*), 0 {message} GROUP BY 1, m.policy_tier, c.endpoint_identity, {_SHARD}"""
    bucket = f"bits({_WAIT_MS})"
    yield f"""{into} SELECT hour_of(m.created_at), 'wait', 'email', m.policy_tier, '', {bucket}, {_SHARD}, count(*),
        sum({_WAIT_MS}) {message} GROUP BY 1, m.policy_tier, {bucket}, {_SHARD}"""
    yield f"""{into} SELECT hour_of(m.created_at), 'ended', 'email', 'done', '', -1, {_SHARD}, count(*), 0 {message}
        GROUP BY 1, {_SHARD}"""
    yield f"""{into} SELECT hour_of(d.created_at), 'decision', 'email', d.action_type, '', -1, {_SHARD}, count(*), 0
        {decided} GROUP BY 1, d.action_type, {_SHARD}"""
    ending = "m.policy_tier || ' ' || d.source || ' ' || CASE WHEN d.needs_approval THEN 'ask' ELSE d.action_type END"
    yield f"""{into} SELECT hour_of(d.created_at), 'outcome', 'email', {ending}, '', -1, {_SHARD}, count(*), 0
        {decided} GROUP BY 1, {ending}, {_SHARD}"""
    rule = "COALESCE(CAST(d.rule_id AS text), d.source)"
    yield f"""{into} SELECT hour_of(d.created_at), 'rule', 'email', {rule}, '', -1, {_SHARD}, count(*), 0
        {decided} GROUP BY 1, {rule}, {_SHARD}"""
    took = "CAST(1 + j.seq * 7919 % 4000 AS bigint)"
    yield f"""{into} SELECT hour_of(j.finished_at), 'job', j.state, j.type, '', bits({took}), 0, count(*), sum({took})
        FROM {ended_jobs} AS j WHERE j.finished_at >= {{since}} GROUP BY 1, j.state, j.type, bits({took})"""
    yield f"""{into} SELECT hour_of(e.accepted_at), 'accepted', 'gateway', e.tier, e.endpoint_identity, -1, e.seq % 8,
        count(*), 0 FROM envelopes e WHERE e.queue = 'gateway' AND e.accepted_at >= {{since}}
        GROUP BY 1, e.tier, e.endpoint_identity, e.seq % 8"""
    yield f"""{into} SELECT hour_of(x.ended_at), 'ended', 'gateway', x.state, '', -1, e.seq % 8, count(*), 0
        FROM inbox_ends x JOIN envelopes e ON e.seq = x.seq WHERE e.queue = 'gateway' AND x.ended_at >= {{since}}
        GROUP BY 1, x.state, e.seq % 8"""
