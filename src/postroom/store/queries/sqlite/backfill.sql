-- name: drop_undecided_backfill_mail(since)
UPDATE backfill_mail SET waits = false WHERE waits AND message_id IN (
    SELECT payload_json ->> 'message_id' FROM job_rows
    WHERE state IN ('failed', 'canceled') AND finished_at >= :since AND type = 'classify'
) RETURNING job_id
