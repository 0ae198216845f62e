-- name: drop_undecided_backfill_mail(since)
-- Compared as text: a payload may have anything in place of an id.
UPDATE backfill_mail SET waits = false WHERE waits AND message_id::text IN (
    SELECT b.payload_json ->> 'message_id' FROM job_ends e JOIN job_bodies b ON b.seq = e.seq
    WHERE e.state IN ('failed', 'canceled') AND e.finished_at >= :since AND b.type = 'classify'
) RETURNING job_id
