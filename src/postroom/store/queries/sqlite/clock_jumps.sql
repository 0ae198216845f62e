-- name: end_retry_waits_ahead(ahead, now)
-- A job that was never tried waits for a time that a person chose.
UPDATE jobs SET not_before = :now, updated_at = :now
WHERE state = 'queued' AND ready = 0 AND not_before > :now AND attempts > 0 AND updated_at > :ahead RETURNING seq

-- name: count_neglected(since)
SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0 AND not_before <= :since LIMIT 1000)),
    (SELECT count(*) FROM job_leases WHERE lease_until <= :since)
