-- name: insert_backfill(id, connector_type, endpoint_identity, target_categories, date_from, date_to, rate, cap, now)
INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, target_categories, date_from, date_to,
    rate_limit_per_hour, daily_cost_cap_cents, created_at, updated_at)
VALUES (:id, :connector_type, :endpoint_identity, CAST(:target_categories AS jsonb), to_date(:date_from, 'YYYY-MM-DD'),
    to_date(:date_to, 'YYYY-MM-DD'), :rate, :cap, :now, :now)

-- name: share_backfills(ids)
-- What changes the state of a job waits until the messages accepted for it are visible.
SELECT j.id, j.endpoint_identity, j.status, j.rate_limit_per_hour, r.ingest_due_at
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
WHERE j.id = ANY(:ids::uuid[]) ORDER BY j.id FOR SHARE OF j FOR UPDATE OF r

-- name: select_held_backfills(day)
-- Those with parked decisions. Also one that is not held: a decision may have been parked just after the others were released.
SELECT r.job_id FROM backfill_runs r JOIN backfill_jobs j ON j.id = r.job_id
WHERE (r.held_on IS NULL OR r.held_on <> :day) AND j.status <> 'paused'
    AND EXISTS (SELECT 1 FROM job_queue q WHERE q.parked_by = 'backfill:' || r.job_id)

-- name: insert_message_categories(message_id, categories)
INSERT INTO message_categories (message_id, category) SELECT :message_id, unnest(:categories::text[])
ON CONFLICT DO NOTHING

-- name: select_live_backlog(queue, tiers)
SELECT 1 FROM unnest(:tiers::text[]) AS t(tier) WHERE EXISTS (
    SELECT 1 FROM inbox_queue q WHERE q.state = 'waiting' AND q.queue = :queue AND q.tier = t.tier
) LIMIT 1

-- name: drop_undecided_backfill_mail(since)
-- Compared as text: a payload may have anything in place of an id.
UPDATE backfill_mail SET waits = false WHERE waits AND message_id::text IN (
    SELECT b.payload_json ->> 'message_id' FROM job_ends e JOIN job_bodies b ON b.seq = e.seq
    WHERE e.state IN ('failed', 'canceled') AND e.finished_at >= :since AND b.type = 'classify'
) RETURNING job_id
