-- name: insert_jobs(rows, now)
INSERT INTO job_rows (id, type, payload_json, priority, max_attempts, idempotency_key, releases_key, traceparent,
    not_before, ready, state, created_at, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, 'queued', :now, :now
FROM json_each(:rows) ORDER BY key

-- name: claim_jobs(token, now, most)
-- There is one writer: what the first statement sees, the second finds unchanged.
SELECT seq, id, type, payload_json, priority, attempts + 1, max_attempts, releases_key, traceparent FROM job_rows
WHERE state = 'queued' AND ready = 1 AND EXISTS (SELECT 1 FROM job_leases WHERE token = :token)
ORDER BY priority DESC, seq LIMIT :most;
UPDATE job_rows SET state = 'running', attempts = attempts + 1, lease_token = :token, updated_at = :now
WHERE seq IN (SELECT seq FROM job_rows WHERE state = 'queued' AND ready = 1 ORDER BY priority DESC, seq LIMIT :most)
    AND EXISTS (SELECT 1 FROM job_leases WHERE token = :token);

-- name: complete_jobs(seqs, attempts, token, now)
UPDATE job_rows SET state = 'completed', lease_token = NULL, cancel_requested = 0, finished_at = :now, updated_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND attempts = :attempts AND lease_token = :token
    AND state = 'running'
RETURNING seq

-- name: end_job(seq, attempts, token, state, error, now)
UPDATE job_rows SET state = :state, lease_token = NULL, cancel_requested = 0, last_error = COALESCE(:error, last_error),
    finished_at = :now, updated_at = :now
WHERE seq = :seq AND attempts = :attempts AND lease_token = :token AND state = 'running'
RETURNING seq

-- name: release_keys(seqs)
DELETE FROM job_keys WHERE key IN (
    SELECT idempotency_key FROM job_rows WHERE seq IN (SELECT value FROM json_each(:seqs)) AND releases_key = 1
) AND job_id IN (SELECT id FROM job_rows WHERE seq IN (SELECT value FROM json_each(:seqs)))

-- name: lock_job(id)
SELECT seq, state, type, idempotency_key, releases_key, priority FROM job_rows WHERE id = :id

-- name: cancel_queued_job(seq, now)
UPDATE job_rows SET state = 'canceled', parked_by = NULL, cancel_requested = 0, finished_at = :now, updated_at = :now
WHERE seq = :seq AND state = 'queued' RETURNING seq

-- name: revive_job(seq, now)
-- An ended job is queued again with its attempts reset; its steps stay, so it resumes after the last one.
UPDATE job_rows SET state = 'queued', ready = 1, attempts = 0, not_before = NULL, cancel_requested = 0,
    finished_at = NULL, updated_at = :now
WHERE seq = :seq AND state IN ('failed', 'canceled') RETURNING seq, priority

-- name: dismiss_jobs(ids, now)
UPDATE job_rows SET state = 'canceled', finished_at = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'failed' RETURNING id

-- name: wake_due_jobs(now, most)
UPDATE job_rows SET ready = 1, parked_by = NULL, updated_at = :now
WHERE seq IN (
    SELECT seq FROM job_rows WHERE state = 'queued' AND ready = 0 AND not_before <= :now ORDER BY not_before LIMIT :most
)
RETURNING seq, priority

-- name: rewind_marks(rows)
-- SQLite removes dead entries from its indexes at once: there are no marks to move.
SELECT 1 WHERE :rows IS NULL

-- name: end_dead_jobs(token, now)
-- The jobs of a dead worker that were to be canceled, or have no attempt left.
UPDATE job_rows SET state = CASE WHEN cancel_requested THEN 'canceled' ELSE 'failed' END, lease_token = NULL,
    cancel_requested = 0, last_error = 'the worker died in attempt ' || attempts, finished_at = :now, updated_at = :now
WHERE lease_token IS NOT NULL AND lease_token = :token AND (cancel_requested OR attempts >= max_attempts)
RETURNING seq, id, attempts, state

-- name: requeue_dead_jobs(token, now)
UPDATE job_rows SET state = 'queued', lease_token = NULL, last_error = 'the worker died in attempt ' || attempts,
    updated_at = :now
WHERE lease_token IS NOT NULL AND lease_token = :token
RETURNING seq, priority, id, attempts

-- name: prune_jobs(state, before, most)
SELECT seq, id FROM job_rows WHERE state = :state AND finished_at < :before LIMIT :most

-- name: prune_receipts(before)
-- SQLite needs no receipts: its commits have no unknown outcome.
SELECT 1 WHERE :before IS NULL

-- name: count_jobs()
SELECT state, count(*) FROM job_rows GROUP BY state
-- name: select_next_due()
SELECT min(not_before) FROM job_rows WHERE state = 'queued' AND ready = 0

-- name: select_active_jobs(ids)
SELECT id FROM job_rows WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at IS NULL AND ready = 1

-- name: end_orphaned_actions(now)
-- The condition must be the one of the index `actions_live`, so that SQLite reads live actions only.
UPDATE actions INDEXED BY actions_live
SET state = CASE ended.state WHEN 'canceled' THEN 'canceled' ELSE 'failed' END,
    error = COALESCE(ended.last_error, 'its job was ' || ended.state), updated_at = :now,
    executed_at = CASE WHEN undo_hint_json IS NULL THEN executed_at ELSE COALESCE(executed_at, :now) END
FROM job_rows AS ended
WHERE actions.state IN ('queued', 'approved_pending', 'executing') AND actions.state <> 'approved_pending'
    AND ended.id = actions.job_id AND ended.state IN ('failed', 'canceled')
RETURNING actions.id
