-- part: ends_within
substr(id, -8) >= :first_end AND substr(id, -8) <= :last_end
-- part: failed_jobs
SELECT id FROM job_rows WHERE state = 'failed' AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 50000
