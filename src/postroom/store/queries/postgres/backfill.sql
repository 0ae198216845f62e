-- name: insert_backfill(id, connector_type, endpoint_identity, target_categories, date_from, date_to, rate, cap, now)
INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, target_categories, date_from, date_to,
    rate_limit_per_hour, daily_cost_cap_cents, created_at, updated_at)
VALUES (:id, :connector_type, :endpoint_identity, CAST(:target_categories AS jsonb), to_date(:date_from, 'YYYY-MM-DD'),
    to_date(:date_to, 'YYYY-MM-DD'), :rate, :cap, :now, :now)

-- name: lock_backfill(id)
SELECT id, endpoint_identity, status FROM backfill_jobs WHERE id = :id FOR UPDATE

-- name: share_backfills(ids)
-- What changes the state of a job waits until the messages accepted for it are visible.
SELECT j.id, j.endpoint_identity, j.status, j.rate_limit_per_hour, r.ingest_due_at
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
WHERE j.id = ANY(:ids::uuid[]) ORDER BY j.id FOR SHARE OF j FOR UPDATE OF r

-- name: lock_endpoint(endpoint_identity)
-- Of two that poll or create at once, the second sees what the first did.
SELECT endpoint_identity FROM accounts WHERE endpoint_identity = :endpoint_identity AND state <> 'removed'
FOR NO KEY UPDATE

-- name: record_backfill_rows(id, rows_processed, rows_skipped, cursor, now)
UPDATE backfill_jobs SET rows_processed = rows_processed + :rows_processed, rows_skipped = rows_skipped + :rows_skipped,
    cursor = COALESCE(CAST(:cursor AS jsonb), cursor), updated_at = :now
WHERE id = :id

-- name: select_held_backfills(day)
-- Those with parked decisions. Also one that is not held: a decision may have been parked just after the others were released.
SELECT r.job_id FROM backfill_runs r JOIN backfill_jobs j ON j.id = r.job_id
WHERE (r.held_on IS NULL OR r.held_on <> :day) AND j.status <> 'paused'
    AND EXISTS (SELECT 1 FROM job_queue q WHERE q.parked_by = 'backfill:' || r.job_id)

-- name: insert_backfill_mail(rows, now)
INSERT INTO backfill_mail (inbox_id, job_id, waits, accepted_at)
SELECT (e ->> 0)::uuid, (e ->> 1)::uuid, (e ->> 2)::boolean, :now FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT DO NOTHING

-- name: insert_backfill_failures(id, rows, now)
INSERT INTO backfill_failures (job_id, provider_message_id, reason, at)
SELECT :id, e ->> 0, e ->> 1, :now FROM jsonb_array_elements(:rows::jsonb) AS e ON CONFLICT DO NOTHING

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

-- name: count_stored_in_categories(endpoint_identity, categories, since, until)
SELECT count(*) FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity AND m.ingestion_tier = 'full' AND m.sent_at >= :since AND m.sent_at < :until
    AND EXISTS (
        SELECT 1 FROM message_categories c WHERE c.message_id = m.id AND c.category = ANY(:categories::text[])
    )

-- name: select_backfill_estimates(ids)
SELECT id, endpoint_identity, request_json, result_json, created_by, created_at FROM backfill_estimates WHERE id = ANY (:ids::uuid[])

-- name: add_backfill_found(rows)
-- In one order, so that two who store mail of the same backfill do not wait for each other in a circle.
INSERT INTO backfill_found (job_id, category, year, messages)
SELECT b.job_id, r.category, r.year, count(*) FROM (SELECT (e ->> 0)::uuid AS inbox_id, e ->> 1 AS category, (e ->> 2)::bigint AS year FROM jsonb_array_elements(:rows::jsonb) AS e) r
JOIN backfill_mail b ON b.inbox_id = r.inbox_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT (job_id, category, year) DO UPDATE SET messages = backfill_found.messages + excluded.messages
