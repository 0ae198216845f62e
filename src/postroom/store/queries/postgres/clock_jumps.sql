-- name: end_retry_waits_ahead(ahead, now)
-- A job that was never tried waits for a time that a person chose.
UPDATE job_queue SET not_before = :now, updated_at = :now
WHERE NOT ready AND state = 'queued' AND not_before > :now AND attempts > 0 AND updated_at > :ahead RETURNING seq

-- name: count_neglected(since)
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_queue WHERE NOT ready AND not_before <= :since LIMIT 1000) AS due),
    (SELECT count(*) FROM job_leases WHERE lease_until <= :since)
