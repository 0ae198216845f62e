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

-- part: leased
-- Messages of `rows` that somebody holds.
q.seq = ANY(ARRAY(
        SELECT seq FROM envelopes WHERE id = ANY(ARRAY(SELECT (e ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e))
    ))
    AND q.state = 'leased' AND q.lease_until >= :now

-- part: held
-- Those that are held under the lease given with them.
{leased}
    AND (q.id, q.lease_token) IN (SELECT (e ->> 0)::uuid, (e ->> 1)::uuid FROM jsonb_array_elements(:rows::jsonb) AS e)

-- name: ack_inbox(rows, now, hour, shard)
-- Rows are pairs of a message and the lease it is held under. They are locked in one order, whatever the plan is.
-- The counts come last, so that nothing waits for a message while it holds a count.
WITH held AS MATERIALIZED (
    SELECT q.seq FROM inbox_queue q WHERE {held} ORDER BY q.seq FOR UPDATE
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

-- name: end_inbox(seqs, state, reason, linked_to, now)
WITH done AS (
    DELETE FROM inbox_queue WHERE seq = ANY(:seqs::bigint[]) RETURNING seq, attempts, queue, tier, accepted_at
), ends AS (
    INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
    SELECT seq, :state::text, attempts, :reason::text, :linked_to::uuid, :now FROM done
)
SELECT seq, queue, tier, accepted_at FROM done

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
