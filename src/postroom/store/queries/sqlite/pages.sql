-- name: count_ended_jobs(since, until)
-- Takes the time from when it was due; one that was tried again, since it was enqueued.
SELECT hour, type, state, CASE ms WHEN 0 THEN 0 ELSE CAST(floor(log2(ms)) AS INTEGER) + 1 END AS bucket,
    count(*) AS count, sum(ms) AS total_ms
FROM (
    SELECT substr(finished_at, 1, 13) || ':00:00.000000Z' AS hour, type, state,
        max(0, CAST(1000 * (unixepoch(finished_at, 'subsec') - unixepoch(
            COALESCE(CASE WHEN attempts <= 1 THEN not_before END, created_at), 'subsec')) AS INTEGER)) AS ms
    FROM job_rows
    WHERE state IN ('completed', 'failed', 'canceled') AND finished_at > :since AND finished_at <= :until
)
GROUP BY 1, 2, 3, 4

-- part: at_stage
SELECT * FROM (SELECT seq FROM job_rows INDEXED BY jobs_claimable
        WHERE :stage = 'ready' AND state = 'queued' AND ready = 1 AND seq < :before ORDER BY seq DESC LIMIT :looked)
    UNION ALL SELECT * FROM (SELECT seq FROM job_rows INDEXED BY jobs_leased
        WHERE :stage = 'running' AND lease_token IS NOT NULL AND seq < :before ORDER BY seq DESC LIMIT :looked)
    UNION ALL SELECT * FROM (SELECT seq FROM job_rows INDEXED BY jobs_parked
        WHERE :stage = 'parked' AND parked_by IS NOT NULL AND seq < :before ORDER BY seq DESC LIMIT :looked)
    UNION ALL SELECT * FROM (SELECT seq FROM job_rows INDEXED BY jobs_sleeping
        WHERE :stage IN ('scheduled', 'retrying') AND state = 'queued' AND ready = 0 AND parked_by IS NULL
            AND (attempts > 0) = (:stage = 'retrying') AND seq < :before ORDER BY seq DESC LIMIT :looked)

-- part: job_line
id, type, state, ready, attempts, max_attempts, not_before, last_error, created_at, finished_at,
    cancel_requested, parked_by

-- part: fitting
(:type IS NULL OR type = :type) AND (:account_id IS NULL OR payload_json ->> 'account_id' = :account_id)
    AND (:error IS NULL OR lower(last_error) LIKE :error ESCAPE '|')

-- name: select_live_jobs(stage, type, account_id, error, before, looked, most)
SELECT j.seq, {job_line} FROM (
    {at_stage}
) AS q JOIN job_rows j ON j.seq = q.seq WHERE {fitting} ORDER BY j.seq DESC LIMIT :most

-- name: select_live_rest(stage, before, looked)
-- The last job that was looked at, if there are more.
SELECT seq FROM (
    {at_stage}
) ORDER BY seq DESC LIMIT 1 OFFSET :looked - 1

-- name: select_ended_jobs(stage, type, account_id, error, before_at, before_seq, looked, most)
SELECT j.seq, {job_line} FROM (
    SELECT seq FROM job_rows INDEXED BY jobs_ended
    WHERE state = :stage AND finished_at IS NOT NULL AND (finished_at, seq) < (:before_at, :before_seq)
    ORDER BY finished_at DESC, seq DESC LIMIT :looked
) AS e JOIN job_rows j ON j.seq = e.seq WHERE {fitting}
ORDER BY finished_at DESC, j.seq DESC LIMIT :most

-- name: select_newest_jobs(stage, type, account_id, error, before, last, most)
SELECT seq, {job_line} FROM job_rows NOT INDEXED
WHERE seq < :before AND seq >= :last AND (:stage IS NULL OR state = :stage) AND {fitting}
ORDER BY seq DESC LIMIT :most

-- name: count_stages(most)
SELECT 'ready', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_claimable WHERE state = 'queued' AND ready = 1 LIMIT :most)
UNION ALL
SELECT 'running', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_leased WHERE lease_token IS NOT NULL LIMIT :most)
UNION ALL
SELECT 'scheduled', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_sleeping
    WHERE state = 'queued' AND ready = 0 AND parked_by IS NULL AND attempts = 0 LIMIT :most)
UNION ALL
SELECT 'retrying', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_sleeping
    WHERE state = 'queued' AND ready = 0 AND parked_by IS NULL AND attempts > 0 LIMIT :most)
UNION ALL
SELECT 'parked', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_parked WHERE parked_by IS NOT NULL LIMIT :most)
UNION ALL
SELECT 'failed', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_ended
    WHERE state = 'failed' AND finished_at IS NOT NULL LIMIT :most)
UNION ALL
SELECT 'canceled', count(*) FROM (SELECT 1 FROM job_rows INDEXED BY jobs_ended
    WHERE state = 'canceled' AND finished_at IS NOT NULL LIMIT :most)

