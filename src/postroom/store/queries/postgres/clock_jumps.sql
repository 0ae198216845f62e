-- name: end_retry_waits_ahead(ahead, now)
-- A job that was never tried waits for a time that somebody chose.
UPDATE job_queue SET not_before = :now, updated_at = :now
WHERE NOT ready AND state = 'queued' AND not_before > :now AND attempts > 0 AND updated_at > :ahead RETURNING seq
