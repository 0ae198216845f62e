-- name: insert_lease(token, holder, until, now)
INSERT INTO job_leases (token, holder, lease_until, heartbeat_at) VALUES (:token, :holder, :until, :now)

-- name: renew_lease(token, until, now)
UPDATE job_leases SET lease_until = :until, heartbeat_at = :now WHERE token = :token RETURNING token

-- name: delete_lease(token)
DELETE FROM job_leases WHERE token = :token

-- name: insert_step(id, job_id, attempt, kind, name, now)
INSERT INTO job_steps (id, job_id, attempt, kind, name, started_at)
VALUES (:id, :job_id, :attempt, :kind, :name, :now)

-- name: finish_step(id, result_json, now)
UPDATE job_steps SET finished_at = :now, result_json = :result_json WHERE id = :id

-- name: select_steps(job_id)
SELECT name, attempt, started_at, finished_at, result_json, kind FROM job_steps WHERE job_id = :job_id
ORDER BY started_at, id

-- name: take_leadership(name, holder, until, now)
INSERT INTO leaders (name, holder, lease_until, term) VALUES (:name, :holder, :until, 1)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, lease_until = excluded.lease_until,
    term = leaders.term + CASE WHEN leaders.holder = excluded.holder THEN 0 ELSE 1 END
WHERE leaders.holder = excluded.holder OR leaders.lease_until < :now
RETURNING term

-- name: resign_leadership(name, holder)
DELETE FROM leaders WHERE name = :name AND holder = :holder

-- name: select_leader(name)
SELECT holder, lease_until, term FROM leaders WHERE name = :name

-- name: upsert_schedule(name, cron, type, payload_json, priority, next_at)
INSERT INTO job_schedules (name, cron, type, payload_json, priority, next_at)
VALUES (:name, :cron, :type, :payload_json, :priority, :next_at)
ON CONFLICT (name) DO UPDATE
SET type = excluded.type, payload_json = excluded.payload_json, priority = excluded.priority,
    next_at = CASE WHEN job_schedules.cron = excluded.cron AND job_schedules.next_at < excluded.next_at
        THEN job_schedules.next_at ELSE excluded.next_at END,
    cron = excluded.cron

-- name: select_schedule_names()
SELECT name FROM job_schedules ORDER BY name

-- name: delete_schedule(name)
DELETE FROM job_schedules WHERE name = :name

-- name: select_due_schedules(now)
SELECT name, cron, type, payload_json, priority, next_at FROM job_schedules WHERE next_at <= :now ORDER BY next_at, name

-- name: select_next_schedule()
SELECT min(next_at) FROM job_schedules

-- name: move_schedule(name, fired_at, next_at)
UPDATE job_schedules SET last_at = :fired_at, next_at = :next_at WHERE name = :name AND next_at = :fired_at
RETURNING name

-- name: select_matching_jobs(state, type, error, account_id, most)
SELECT id, type FROM jobs
WHERE state = :state AND (CAST(:type AS text) IS NULL OR type = CAST(:type AS text))
    AND (CAST(:error AS text) IS NULL OR lower(last_error) LIKE CAST(:error AS text) ESCAPE '|')
    AND (CAST(:account_id AS text) IS NULL OR payload_json ->> 'account_id' = CAST(:account_id AS text))
ORDER BY seq LIMIT :most

-- name: take_keys(rows)
INSERT INTO job_keys (key, job_id)
SELECT value ->> 0, (value ->> 1){::uuid} FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT DO NOTHING RETURNING key

-- name: select_keys(keys)
SELECT key, job_id FROM job_keys WHERE key {= ANY(:keys::text[])}

-- name: insert_events(name, rows, now)
INSERT INTO job_steps (id, job_id, attempt, kind, name, started_at, finished_at, result_json)
SELECT (value ->> 0){::uuid}, (value ->> 1){::uuid}, (value ->> 2){::integer}, 'event', :name, :now, :now, (value ->> 3){::json}
FROM {jsonb_array_elements(:rows::jsonb)} AS e

-- name: retry_job_later(seq, attempts, token, not_before, error, now)
UPDATE {job_queue}
SET state = 'queued', ready = false, lease_token = NULL, not_before = :not_before, last_error = :error, updated_at = :now
WHERE seq = :seq AND attempts = :attempts AND lease_token = :token AND state = 'running' AND attempts < max_attempts
RETURNING seq, cancel_requested

-- name: park_job(seq, attempts, token, key, reason, until, now)
UPDATE {job_queue}
SET state = 'queued', ready = false, lease_token = NULL, attempts = attempts - 1, not_before = :until,
    parked_by = :key, last_error = :reason, updated_at = :now
WHERE seq = :seq AND attempts = :attempts AND lease_token = :token AND state = 'running'
RETURNING seq, cancel_requested

-- name: unpark_jobs(key, now)
UPDATE {job_queue} SET ready = true, parked_by = NULL, not_before = NULL, updated_at = :now WHERE parked_by = :key
RETURNING seq, priority

-- name: release_jobs(seqs, attempts, token, now)
UPDATE {job_queue} SET state = 'queued', lease_token = NULL, attempts = attempts - 1, updated_at = :now
WHERE seq {= ANY(:seqs::bigint[])} AND attempts = :attempts AND lease_token = :token AND state = 'running'
RETURNING seq, priority, cancel_requested

-- name: select_claim(seq, attempts, token)
SELECT cancel_requested FROM {job_queue}
WHERE seq = :seq AND attempts = :attempts AND lease_token = :token AND state = 'running' {FOR SHARE}

-- name: select_cancel_requests(seqs, token)
SELECT seq FROM {job_queue} WHERE seq {= ANY(:seqs::bigint[])} AND lease_token = :token AND cancel_requested

-- name: request_cancel(seq, now)
UPDATE {job_queue} SET cancel_requested = true, updated_at = :now WHERE seq = :seq AND state = 'running' RETURNING seq

-- name: hasten_job(seq, now)
-- A sleeping or parked job is made due at once.
UPDATE {job_queue} SET ready = true, not_before = NULL, parked_by = NULL, updated_at = :now
WHERE seq = :seq AND state = 'queued' AND NOT ready
RETURNING seq, priority

-- name: lock_dead_lease(now)
SELECT token, holder FROM job_leases WHERE lease_until < :now LIMIT 1 {FOR UPDATE SKIP LOCKED}

-- name: delete_pruned(seqs, ids)
DELETE FROM job_steps WHERE job_id {= ANY(:ids::uuid[])};
DELETE FROM {job_bodies} WHERE seq {= ANY(:seqs::bigint[])};

-- part: shown
id, type, state, priority, attempts, max_attempts, payload_json, idempotency_key, not_before, last_error,
    heartbeat_at, created_at, updated_at, finished_at, cancel_requested, parked_by

-- name: list_jobs(state, type, most)
SELECT {shown} FROM jobs
WHERE (:state{::text} IS NULL OR state = :state) AND (:type{::text} IS NULL OR type = :type)
ORDER BY seq DESC LIMIT :most

-- name: show_job(id)
SELECT {shown} FROM jobs WHERE id = :id

-- name: disown_jobs(token, known, now)
UPDATE {job_queue} SET state = 'queued', lease_token = NULL, attempts = attempts - 1, updated_at = :now
WHERE ready AND state = 'running' AND lease_token = :token AND NOT seq {= ANY(:known::bigint[])}
RETURNING seq, priority, cancel_requested

-- name: count_failed_jobs(most)
SELECT count(*) FROM (SELECT 1 FROM {job_ends} WHERE state = 'failed' AND finished_at IS NOT NULL LIMIT :most) AS failed
