-- name: count_ended_jobs(since, until)
-- Takes the time from when it was due; one that was tried again, since it was enqueued.
SELECT hour, type, state, length(ltrim(ms::bit(64)::text, '0')) AS bucket, count(*) AS count, sum(ms)::bigint AS total_ms
FROM (
    SELECT date_trunc('hour', e.finished_at, 'UTC') AS hour, b.type, e.state,
        GREATEST(0, floor(extract(epoch FROM e.finished_at
            - COALESCE(CASE WHEN e.attempts <= 1 THEN e.not_before END, b.created_at)) * 1000))::bigint AS ms
    FROM job_ends e JOIN job_bodies b ON b.seq = e.seq
    WHERE e.finished_at > :since AND e.finished_at <= :until
) AS ended
GROUP BY 1, 2, 3, 4

-- part: at_stage
seq < :before AND CASE :stage::text
    WHEN 'ready' THEN ready AND state = 'queued'
    WHEN 'running' THEN state = 'running'
    WHEN 'parked' THEN parked_by IS NOT NULL
    WHEN 'retrying' THEN NOT ready AND parked_by IS NULL AND attempts > 0
    ELSE NOT ready AND parked_by IS NULL AND attempts = 0 END

-- part: fitting
(:type::text IS NULL OR type = :type) AND (:account_id::text IS NULL OR payload_json ->> 'account_id' = :account_id)
    AND (:error::text IS NULL OR lower(last_error) LIKE :error ESCAPE '|')

-- name: select_live_jobs(stage, type, account_id, error, before, looked, most)
SELECT b.seq, b.id, b.type, q.state, q.ready, q.attempts, q.max_attempts, q.not_before, q.last_error, b.created_at,
    NULL::timestamptz AS finished_at, q.cancel_requested, q.parked_by
FROM (
    SELECT * FROM job_queue WHERE {at_stage} ORDER BY seq DESC LIMIT :looked
) AS q JOIN job_bodies b ON b.seq = q.seq WHERE {fitting}
ORDER BY b.seq DESC LIMIT :most

-- name: select_live_rest(stage, before, looked)
-- The last job that was looked at, if there are more.
SELECT seq FROM job_queue WHERE {at_stage}
ORDER BY seq DESC LIMIT 1 OFFSET :looked - 1

-- name: select_ended_jobs(stage, type, account_id, error, before_at, before_seq, looked, most)
SELECT b.seq, b.id, b.type, e.state, false AS ready, e.attempts, b.max_attempts, e.not_before, e.last_error, b.created_at,
    e.finished_at, false AS cancel_requested, NULL::text AS parked_by
FROM (
    SELECT * FROM job_ends
    WHERE state = :stage AND state <> 'completed' AND (finished_at, seq) < (:before_at, :before_seq)
    ORDER BY finished_at DESC, seq DESC LIMIT :looked
) AS e JOIN job_bodies b ON b.seq = e.seq WHERE {fitting}
ORDER BY e.finished_at DESC, e.seq DESC LIMIT :most

-- name: select_newest_jobs(stage, type, account_id, error, before, last, most)
SELECT seq, id, type, state, ready, attempts, max_attempts, not_before, last_error, created_at, finished_at,
    cancel_requested, parked_by
FROM jobs
WHERE seq < :before AND seq >= :last AND (:stage::text IS NULL OR state = :stage) AND {fitting}
ORDER BY seq DESC LIMIT :most

-- name: count_stages(most)
SELECT 'ready', count(*) FROM (SELECT 1 FROM job_queue WHERE ready AND state = 'queued' LIMIT :most) AS a
UNION ALL
SELECT 'running', count(*) FROM (SELECT 1 FROM job_queue WHERE state = 'running' LIMIT :most) AS b
UNION ALL
SELECT 'scheduled', count(*)
FROM (SELECT 1 FROM job_queue WHERE NOT ready AND parked_by IS NULL AND attempts = 0 LIMIT :most) AS c
UNION ALL
SELECT 'retrying', count(*)
FROM (SELECT 1 FROM job_queue WHERE NOT ready AND parked_by IS NULL AND attempts > 0 LIMIT :most) AS d
UNION ALL
SELECT 'parked', count(*) FROM (SELECT 1 FROM job_queue WHERE parked_by IS NOT NULL LIMIT :most) AS e
UNION ALL
SELECT 'failed', count(*) FROM (SELECT 1 FROM job_ends WHERE state = 'failed' LIMIT :most) AS f
UNION ALL
SELECT 'canceled', count(*) FROM (SELECT 1 FROM job_ends WHERE state = 'canceled' LIMIT :most) AS g

