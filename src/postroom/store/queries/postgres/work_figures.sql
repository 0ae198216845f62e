-- name: count_jobs_by_type(most)
WITH counted AS (
    (SELECT seq, 'ready' AS stage FROM job_queue WHERE ready AND state = 'queued' LIMIT :most)
    UNION ALL
    (SELECT seq, 'running' FROM job_queue WHERE state = 'running' LIMIT :most)
    UNION ALL
    (SELECT seq, CASE WHEN attempts = 0 THEN 'scheduled' ELSE 'retrying' END
    FROM job_queue WHERE NOT ready AND parked_by IS NULL LIMIT :most)
    UNION ALL
    (SELECT seq, 'parked' FROM job_queue WHERE parked_by IS NOT NULL LIMIT :most)
    UNION ALL
    (SELECT seq, 'failed' FROM job_ends WHERE state = 'failed' LIMIT :most)
)
SELECT b.type, c.stage, count(*) FROM counted c JOIN job_bodies b ON b.seq = c.seq GROUP BY b.type, c.stage

-- name: select_database_size()
SELECT pg_database_size(current_database())
