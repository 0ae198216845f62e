-- name: insert_backfill(id, connector_type, endpoint_identity, target_categories, date_from, date_to, rate, cap, now)
INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, target_categories, date_from, date_to,
    rate_limit_per_hour, daily_cost_cap_cents, created_at, updated_at)
VALUES (:id, :connector_type, :endpoint_identity, :target_categories, :date_from, :date_to, :rate, :cap, :now, :now)

-- name: share_backfills(ids)
SELECT j.id, j.endpoint_identity, j.status, j.rate_limit_per_hour, r.ingest_due_at
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id WHERE j.id IN (SELECT value FROM json_each(:ids))

-- name: select_held_backfills(day)
-- Those with parked decisions. Also one that is not held: a decision may have been parked just after the others were released.
SELECT r.job_id FROM backfill_runs r JOIN backfill_jobs j ON j.id = r.job_id
WHERE (r.held_on IS NULL OR r.held_on <> :day) AND j.status <> 'paused'
    AND EXISTS (SELECT 1 FROM job_rows q WHERE q.parked_by = 'backfill:' || r.job_id)

-- name: insert_message_categories(message_id, categories)
INSERT INTO message_categories (message_id, category) SELECT :message_id, value FROM json_each(:categories) WHERE true
ON CONFLICT DO NOTHING

-- name: select_live_backlog(queue, tiers)
SELECT 1 FROM json_each(:tiers) AS t WHERE EXISTS (
    SELECT 1 FROM inbox_queue q WHERE q.state = 'waiting' AND q.queue = :queue AND q.tier = t.value
) LIMIT 1

-- name: drop_undecided_backfill_mail(since)
UPDATE backfill_mail SET waits = false WHERE waits AND message_id IN (
    SELECT payload_json ->> 'message_id' FROM job_rows
    WHERE state IN ('failed', 'canceled') AND finished_at >= :since AND type = 'classify'
) RETURNING job_id
