-- name: share_accounts(identities)
-- Removing an account locks it first, and so waits until what was accepted for it is visible.
SELECT endpoint_identity, state FROM accounts WHERE endpoint_identity = ANY(:identities::text[])
ORDER BY endpoint_identity FOR KEY SHARE

-- name: take_inbox_keys(rows)
-- In the order of the keys, so that two writers of the same keys cannot deadlock.
INSERT INTO inbox_keys (key, event_key)
SELECT e ->> 0, e ->> 1 FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 1
ON CONFLICT DO NOTHING RETURNING key

-- name: take_events(rows)
INSERT INTO inbox_events (event_key, inbox_id, sender, ingestion_tier)
SELECT e ->> 0, (e ->> 1)::uuid, e ->> 2, e ->> 3 FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 1
ON CONFLICT DO NOTHING RETURNING event_key

-- name: take_texts(rows, now)
-- A content whose time is over, or whose first message ended as failed, counts as new.
INSERT INTO inbox_texts (queue, text_hash, inbox_id, expires_at)
SELECT e ->> 0, e ->> 1, (e ->> 2)::uuid, (e ->> 3)::timestamptz
FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 1, 2
ON CONFLICT (queue, text_hash) DO UPDATE SET inbox_id = excluded.inbox_id, expires_at = excluded.expires_at
WHERE inbox_texts.expires_at <= :now OR EXISTS (
    SELECT 1 FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq WHERE e.id = inbox_texts.inbox_id AND x.state = 'failed'
)
RETURNING queue, text_hash

-- name: insert_inbox(rows, now)
-- A row is waiting, or ends at once as the duplicate of another.
WITH asked AS (
    SELECT nextval(pg_get_serial_sequence('postroom.envelopes', 'seq')) AS seq, (e ->> 0)::uuid AS id, e ->> 1 AS queue,
        e ->> 2 AS tier, e ->> 3 AS channel, e ->> 4 AS provider, e ->> 5 AS endpoint_identity,
        e ->> 6 AS external_event_id, e ->> 7 AS sender, e ->> 8 AS kind, e ->> 9 AS policy_tier,
        e ->> 10 AS ingestion_tier, (e ->> 11)::json AS envelope_json, e ->> 12 AS traceparent,
        (e ->> 13)::uuid AS copy_of, (e ->> 14)::timestamptz AS observed_at, (e ->> 15)::uuid AS duplicate_of,
        e ->> 16 AS reason
    FROM jsonb_array_elements(:rows::jsonb) AS e
), bodies AS (
    INSERT INTO envelopes (seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
        policy_tier, ingestion_tier, envelope_json, traceparent, copy_of, observed_at, accepted_at)
    SELECT seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
        policy_tier, ingestion_tier, envelope_json, traceparent, copy_of, observed_at, :now
    FROM asked
), ends AS (
    INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
    SELECT seq, 'duplicate', 0, reason, duplicate_of, :now FROM asked WHERE duplicate_of IS NOT NULL
)
INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
SELECT seq, id, queue, tier, 'waiting', :now FROM asked WHERE duplicate_of IS NULL

-- name: select_lines(queue, tiers, most)
-- The oldest of each tier: a few steps into the index, however long the queue is.
SELECT line.tier, line.seq, line.accepted_at, line.attempts = 0
FROM unnest(:tiers::text[]) AS t (tier) CROSS JOIN LATERAL (
    SELECT q.tier, q.seq, q.accepted_at, q.attempts FROM inbox_queue q
    WHERE q.state = 'waiting' AND q.queue = :queue AND q.tier = t.tier
    ORDER BY q.queue, q.tier, q.seq LIMIT :most
) AS line

-- name: lease_inbox(seqs, token, until, turns, queue, streaks_json, turns_json, waits, hour, shard)
-- The streaks, the leases and the counts of waits: a batch in one statement.
WITH streaks AS (
    UPDATE queue_state SET streaks_json = :streaks_json, turns_json = :turns_json WHERE queue = :queue
), counted AS (
    INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
    SELECT :hour::timestamptz, e ->> 0, e ->> 1, e ->> 2, e ->> 3, (e ->> 4)::bigint, :shard::bigint,
        (e ->> 5)::bigint, (e ->> 6)::bigint
    FROM jsonb_array_elements(:waits::jsonb) AS e
    ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
    DO UPDATE SET count = rollups.count + excluded.count, total_ms = rollups.total_ms + excluded.total_ms
), taken AS (
    UPDATE inbox_queue SET state = 'leased', lease_token = :token, lease_until = :until, attempts = attempts + 1,
        turn_json = :turns::jsonb ->> seq::text
    WHERE seq = ANY(:seqs::bigint[]) AND state = 'waiting' RETURNING seq, attempts
)
SELECT t.seq, t.attempts, e.id, e.policy_tier, e.ingestion_tier, e.endpoint_identity, e.envelope_json, e.traceparent,
    e.members, e.accepted_at
FROM taken t JOIN envelopes e ON e.seq = t.seq

-- name: ack_inbox(rows, now, hour, shard)
-- Rows are pairs of a message and the lease it is held under. They are locked in one order, whatever the plan is.
-- The counts come last, so that nothing waits for a message while it holds a count.
WITH held AS MATERIALIZED (
    SELECT q.seq FROM inbox_queue q
    WHERE q.seq = ANY(ARRAY(
        SELECT seq FROM envelopes WHERE id = ANY(ARRAY(SELECT (e ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e))
    ))
        AND q.state = 'leased' AND q.lease_until >= :now
        AND (q.id, q.lease_token) IN (SELECT (e ->> 0)::uuid, (e ->> 1)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e)
    ORDER BY q.seq FOR UPDATE
), done AS (
    DELETE FROM inbox_queue q WHERE q.seq = ANY(ARRAY(SELECT seq FROM held))
    RETURNING q.seq, q.id, q.lease_token, q.queue, q.tier, q.attempts, q.accepted_at
), ends AS (
    INSERT INTO inbox_ends (seq, state, attempts, ended_at) SELECT seq, 'done', attempts, :now FROM done
), counted AS (
    INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
    SELECT :hour::timestamptz, 'ended', queue, 'done', '', -1, :shard::bigint, count(*), 0 FROM done GROUP BY queue
    ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
    DO UPDATE SET count = rollups.count + excluded.count
)
SELECT id, lease_token, queue, tier, accepted_at FROM done

-- name: lock_leased(rows, now)
SELECT q.seq, q.id, q.lease_token, q.queue, q.tier, q.attempts, q.accepted_at FROM inbox_queue q
WHERE q.seq = ANY(ARRAY(
        SELECT seq FROM envelopes WHERE id = ANY(ARRAY(SELECT (e ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e))
    ))
    AND q.state = 'leased' AND q.lease_until >= :now
    AND (q.id, q.lease_token) IN (SELECT (e ->> 0)::uuid, (e ->> 1)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e)
ORDER BY q.seq FOR UPDATE

-- name: select_leased_queues(rows, now)
SELECT DISTINCT q.queue FROM inbox_queue q
WHERE q.seq = ANY(ARRAY(
        SELECT seq FROM envelopes WHERE id = ANY(ARRAY(SELECT (e ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e))
    ))
    AND q.state = 'leased' AND q.lease_until >= :now

-- name: lock_expired(now, most)
SELECT seq, queue, tier, attempts FROM inbox_queue WHERE state = 'leased' AND lease_until < :now
ORDER BY lease_until LIMIT :most FOR UPDATE SKIP LOCKED

-- name: end_inbox(seqs, state, reason, linked_to, now)
WITH done AS (
    DELETE FROM inbox_queue WHERE seq = ANY(:seqs::bigint[]) RETURNING seq, attempts, queue, tier, accepted_at
), ends AS (
    INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
    SELECT seq, :state::text, attempts, :reason::text, :linked_to::uuid, :now FROM done
)
SELECT seq, queue, tier, accepted_at FROM done

-- name: add_rollups(rows, hour, shard)
INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
SELECT :hour, e ->> 0, e ->> 1, e ->> 2, e ->> 3, (e ->> 4)::bigint, :shard, (e ->> 5)::bigint, (e ->> 6)::bigint
FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY 2, 3, 4, 5, 6
ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
DO UPDATE SET count = rollups.count + excluded.count, total_ms = rollups.total_ms + excluded.total_ms

-- name: replay_inbox(rows, queue, now)
-- Each pair is a past message and the id of its copy, which waits like a new one.
WITH asked AS (
    SELECT nextval(pg_get_serial_sequence('postroom.envelopes', 'seq')) AS new_seq, (e ->> 1)::uuid AS new_id, v.*
    FROM jsonb_array_elements(:rows::jsonb) WITH ORDINALITY AS r (e, place) JOIN envelopes v ON v.id = (e ->> 0)::uuid
    ORDER BY r.place
), bodies AS (
    INSERT INTO envelopes (seq, id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
        policy_tier, ingestion_tier, envelope_json, traceparent, copy_of, observed_at, accepted_at)
    SELECT new_seq, new_id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
        policy_tier, ingestion_tier, envelope_json, traceparent, id, observed_at, :now
    FROM asked
)
INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
SELECT new_seq, new_id, :queue, tier, 'waiting', :now FROM asked

-- name: select_history(queue, since, until, kinds, most)
-- Messages that ended, excluding duplicates and copies made by a replay.
SELECT e.id FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq
WHERE e.queue = :queue AND e.accepted_at >= :since AND e.accepted_at < :until AND e.members IS NULL
    AND x.state <> 'duplicate' AND (cardinality(:kinds::text[]) = 0 OR e.kind = ANY(:kinds))
    AND NOT EXISTS (SELECT 1 FROM envelopes o WHERE o.id = e.copy_of AND o.ingestion_tier = e.ingestion_tier)
ORDER BY e.accepted_at, e.seq LIMIT :most

-- name: select_named(queue, since, until, kinds, ids, most)
-- Selected by id, a dropped duplicate is replayed too.
SELECT e.id FROM envelopes e JOIN inbox_ends x ON x.seq = e.seq
WHERE e.id = ANY(:ids::uuid[]) AND e.queue = :queue AND e.accepted_at >= :since AND e.accepted_at < :until
    AND e.members IS NULL AND (cardinality(:kinds::text[]) = 0 OR e.kind = ANY(:kinds))
ORDER BY e.accepted_at, e.seq LIMIT :most
