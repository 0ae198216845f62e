-- name: count_jobs_by_type(most)
SELECT type, 'ready', count(*) FROM
    (SELECT type FROM job_rows INDEXED BY jobs_claimable WHERE state = 'queued' AND ready = 1 LIMIT :most) GROUP BY type
UNION ALL
SELECT type, 'running', count(*) FROM
    (SELECT type FROM job_rows INDEXED BY jobs_leased WHERE lease_token IS NOT NULL LIMIT :most) GROUP BY type
UNION ALL
SELECT type, CASE WHEN attempts = 0 THEN 'scheduled' ELSE 'retrying' END, count(*) FROM
    (SELECT type, attempts FROM job_rows INDEXED BY jobs_sleeping
    WHERE state = 'queued' AND ready = 0 AND parked_by IS NULL LIMIT :most) GROUP BY 1, 2
UNION ALL
SELECT type, 'parked', count(*) FROM
    (SELECT type FROM job_rows INDEXED BY jobs_parked WHERE parked_by IS NOT NULL LIMIT :most) GROUP BY type
UNION ALL
SELECT type, 'failed', count(*) FROM
    (SELECT type FROM job_rows INDEXED BY jobs_ended WHERE state = 'failed' AND finished_at IS NOT NULL LIMIT :most) GROUP BY type

-- name: select_database_size()
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()
