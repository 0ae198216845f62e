-- name: insert_jobs(rows, now)
-- Marks are created for new priorities. `ready` rows are claimable as soon as this commits.
WITH asked AS (
    SELECT nextval('postroom.job_bodies_seq_seq') AS seq, (e ->> 0)::uuid AS id, e ->> 1 AS type,
        (e ->> 2)::json AS payload_json, (e ->> 3)::smallint AS priority, (e ->> 4)::smallint AS max_attempts,
        e ->> 5 AS idempotency_key, (e ->> 6)::boolean AS releases_key, e ->> 7 AS traceparent,
        (e ->> 8)::timestamptz AS not_before, (e ->> 9)::boolean AS ready
    FROM jsonb_array_elements(:rows::jsonb) AS e
), bodies AS (
    INSERT INTO job_bodies
        (seq, id, type, payload_json, priority, max_attempts, idempotency_key, releases_key, traceparent, created_at)
    SELECT seq, id, type, payload_json, priority, max_attempts, idempotency_key, releases_key, traceparent, :now
    FROM asked
), marks AS (
    INSERT INTO job_marks (priority, low) SELECT DISTINCT priority, 0 FROM asked ON CONFLICT DO NOTHING
)
INSERT INTO job_queue (seq, priority, state, ready, max_attempts, not_before, updated_at)
SELECT seq, priority, 'queued', ready, max_attempts, not_before, :now FROM asked

-- name: claim_jobs(token, now, most)
-- The worker's lease is locked while it claims, so that it cannot be rescued meanwhile. The marks are read
-- highest priority first, and each is followed only as far as needed.
WITH lease AS MATERIALIZED (
    SELECT token FROM job_leases WHERE token = :token FOR KEY SHARE
), picked AS MATERIALIZED (
    SELECT found.spot
    FROM lease, (SELECT priority, low FROM job_marks ORDER BY priority DESC) AS mark
    CROSS JOIN LATERAL (
        SELECT q.ctid AS spot FROM job_queue q
        WHERE q.ready AND q.state = 'queued' AND q.priority = mark.priority AND q.seq >= mark.low
        ORDER BY q.priority, q.seq LIMIT :most FOR UPDATE SKIP LOCKED
    ) AS found
    LIMIT :most
), taken AS (
    UPDATE job_queue q SET state = 'running', attempts = q.attempts + 1, lease_token = :token, updated_at = :now
    WHERE q.ctid = ANY(ARRAY(SELECT spot FROM picked))
    RETURNING q.seq, q.priority, q.attempts, q.max_attempts
)
SELECT t.seq, b.id, b.type, b.payload_json, t.priority, t.attempts, t.max_attempts, b.releases_key, b.traceparent
FROM taken t JOIN job_bodies b ON b.seq = t.seq
ORDER BY t.priority DESC, t.seq

-- name: complete_jobs(seqs, attempts, token, now)
WITH done AS (
    DELETE FROM job_queue
    WHERE seq = ANY(:seqs::bigint[]) AND attempts = :attempts AND lease_token = :token AND state = 'running'
    RETURNING seq, attempts, not_before, last_error
)
INSERT INTO job_ends (seq, state, attempts, not_before, last_error, finished_at)
SELECT seq, 'completed', attempts, not_before, last_error, :now FROM done
RETURNING seq

-- name: end_job(seq, attempts, token, state, error, now)
WITH done AS (
    DELETE FROM job_queue
    WHERE seq = :seq AND attempts = :attempts AND lease_token = :token AND state = 'running'
    RETURNING seq, attempts, not_before, last_error
)
INSERT INTO job_ends (seq, state, attempts, not_before, last_error, finished_at)
SELECT seq, :state::text, attempts, not_before, COALESCE(:error::text, last_error), :now FROM done
RETURNING seq

-- name: release_keys(seqs)
DELETE FROM job_keys k USING job_bodies b
WHERE b.seq = ANY(:seqs::bigint[]) AND b.releases_key AND k.key = b.idempotency_key AND k.job_id = b.id

-- name: lock_job(id)
SELECT b.seq, COALESCE(q.state, e.state), b.type, b.idempotency_key, b.releases_key, b.priority
FROM job_bodies b LEFT JOIN job_queue q ON q.seq = b.seq LEFT JOIN job_ends e ON e.seq = b.seq
WHERE b.id = :id FOR UPDATE OF b

-- name: cancel_queued_job(seq, now)
WITH done AS (
    DELETE FROM job_queue WHERE seq = :seq AND state = 'queued' RETURNING seq, attempts, not_before, last_error
)
INSERT INTO job_ends (seq, state, attempts, not_before, last_error, finished_at)
SELECT seq, 'canceled', attempts, not_before, last_error, :now FROM done
RETURNING seq

-- name: revive_job(seq, now)
-- An ended job is queued again with its attempts reset; its steps stay, so it resumes after the last one.
WITH ended AS (
    DELETE FROM job_ends WHERE seq = :seq AND state IN ('failed', 'canceled') RETURNING seq, last_error
)
INSERT INTO job_queue (seq, priority, state, ready, max_attempts, last_error, updated_at)
SELECT b.seq, b.priority, 'queued', true, b.max_attempts, e.last_error, :now
FROM ended e JOIN job_bodies b ON b.seq = e.seq
RETURNING seq, priority

-- name: dismiss_jobs(ids, now)
-- A job that has ended shows when it ended as its last change.
UPDATE job_ends e SET state = 'canceled', finished_at = :now FROM job_bodies b
WHERE b.id = ANY(:ids::uuid[]) AND b.seq = e.seq AND e.state = 'failed' RETURNING b.id

-- name: wake_due_jobs(now, most)
UPDATE job_queue q SET ready = true, parked_by = NULL, updated_at = :now
WHERE q.ctid = ANY(ARRAY(
    SELECT ctid FROM job_queue WHERE NOT ready AND state = 'queued' AND not_before <= :now
    ORDER BY not_before LIMIT :most FOR UPDATE SKIP LOCKED
))
RETURNING q.seq, q.priority

-- name: rewind_marks(rows)
-- Making an old job claimable again always rewinds the mark, even if it seems low enough: another transaction
-- may just be moving it up. Marks are locked in the order of priorities, as lock_marks does, whatever the plan is.
WITH d AS (
    SELECT (e ->> 1)::smallint AS priority, min((e ->> 0)::bigint) AS seq
    FROM jsonb_array_elements(:rows::jsonb) AS e GROUP BY 1
), locked AS MATERIALIZED (
    SELECT priority FROM job_marks WHERE priority = ANY(ARRAY(SELECT priority FROM d)) ORDER BY priority FOR NO KEY UPDATE
)
UPDATE job_marks m SET low = LEAST(m.low, d.seq) FROM d
WHERE m.priority = d.priority AND m.priority = ANY(ARRAY(SELECT priority FROM locked))

-- name: select_last_seq()
SELECT last_value FROM job_bodies_seq_seq

-- name: select_open_inserts()
-- Transactions that may have taken a seq and not committed yet: they hold this lock from before they take it.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'postroom.job_bodies'::regclass AND mode = 'RowExclusiveLock'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: lock_marks()
SELECT priority, low FROM job_marks ORDER BY priority FOR UPDATE

-- name: advance_marks(bound)
UPDATE job_marks m SET low = s.low
FROM (
    SELECT priority, GREATEST(low, LEAST(:bound::bigint + 1, COALESCE((
        SELECT q.seq FROM job_queue q
        WHERE q.ready AND q.state = 'queued' AND q.priority = job_marks.priority AND q.seq >= job_marks.low
        ORDER BY q.priority, q.seq LIMIT 1
    ), :bound::bigint + 1))) AS low
    FROM job_marks
) AS s
WHERE m.priority = s.priority AND m.low < s.low

-- name: end_dead_jobs(token, now)
-- The jobs of a dead worker that were to be canceled, or have no attempt left.
WITH done AS (
    DELETE FROM job_queue
    WHERE ready AND state = 'running' AND lease_token = :token AND (cancel_requested OR attempts >= max_attempts)
    RETURNING seq, attempts, not_before, cancel_requested
), ends AS (
    INSERT INTO job_ends (seq, state, attempts, not_before, last_error, finished_at)
    SELECT seq, CASE WHEN cancel_requested THEN 'canceled' ELSE 'failed' END, attempts, not_before,
        'the worker died in attempt ' || attempts, :now
    FROM done
)
SELECT d.seq, b.id, d.attempts, CASE WHEN d.cancel_requested THEN 'canceled' ELSE 'failed' END
FROM done d JOIN job_bodies b ON b.seq = d.seq

-- name: requeue_dead_jobs(token, now)
WITH requeued AS (
    UPDATE job_queue
    SET state = 'queued', lease_token = NULL, last_error = 'the worker died in attempt ' || attempts, updated_at = :now
    WHERE ready AND state = 'running' AND lease_token = :token
    RETURNING seq, priority, attempts
)
SELECT r.seq, r.priority, b.id, r.attempts FROM requeued r JOIN job_bodies b ON b.seq = r.seq

-- name: prune_jobs(state, before, most)
WITH old AS (
    DELETE FROM job_ends WHERE seq = ANY(ARRAY(
        SELECT seq FROM job_ends WHERE state = :state AND finished_at < :before LIMIT :most
    )) RETURNING seq
)
SELECT b.seq, b.id FROM old JOIN job_bodies b ON b.seq = old.seq

-- name: prune_receipts(before)
DELETE FROM receipts WHERE written_at < :before

-- name: count_jobs()
SELECT state, count(*) FROM job_queue GROUP BY state
UNION ALL SELECT state, count(*) FROM job_ends GROUP BY state
-- name: select_next_due()
SELECT min(not_before) FROM job_queue WHERE NOT ready

-- name: select_active_jobs(ids)
SELECT b.id FROM job_bodies b JOIN job_queue q ON q.seq = b.seq WHERE b.id = ANY(:ids::uuid[]) AND q.ready

-- name: end_orphaned_actions(now)
UPDATE actions a
SET state = CASE e.state WHEN 'canceled' THEN 'canceled' ELSE 'failed' END,
    error = COALESCE(e.last_error, 'its job was ' || e.state), updated_at = :now,
    executed_at = CASE WHEN a.undo_hint_json IS NULL THEN a.executed_at ELSE COALESCE(a.executed_at, :now) END
FROM job_bodies b JOIN job_ends e ON e.seq = b.seq
WHERE a.state IN ('queued', 'executing') AND b.id = a.job_id AND e.state IN ('failed', 'canceled')
RETURNING a.id
