-- part: jobs
SELECT j.id, j.connector_type, j.endpoint_identity, CAST(j.target_categories AS text) AS target_categories,
    CAST(j.date_from AS text) AS date_from, CAST(j.date_to AS text) AS date_to, j.rate_limit_per_hour,
    j.daily_cost_cap_cents, j.status, CAST(j.cursor AS text) AS cursor, j.rows_processed, j.rows_skipped,
    j.cost_spent_cents, j.error, j.created_at, j.started_at, j.completed_at, j.updated_at, r.mode, r.resume_daily, r.acts,
    r.message_cost_micros, r.estimate_id, r.lease_token, r.lease_until, r.lease_holder, r.batch_seq, r.paced_until, r.accepted,
    r.accepted_new, r.covered, r.rows_failed, r.spent_micros, r.categories_json, r.capped_on,
    COALESCE((SELECT d.micros FROM backfill_days d WHERE d.job_id = j.id AND d.day = :day), 0) AS spent_today_micros,
    (SELECT count(*) FROM backfill_mail m WHERE m.job_id = j.id AND m.waits AND m.accepted_at >= :recent)
        AS messages_waiting
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id

-- name: select_backfill(id, day, recent)
{jobs} WHERE j.id = :id

-- name: select_backfills(connector_type, endpoint_identity, status, before_at, before_id, most, day, recent)
{jobs} WHERE j.id IN (
    SELECT id FROM backfill_jobs
    WHERE (CAST(:connector_type AS text) IS NULL OR connector_type = :connector_type)
        AND (CAST(:endpoint_identity AS text) IS NULL OR endpoint_identity = :endpoint_identity)
        AND (CAST(:status AS text) IS NULL OR status = :status)
        AND (created_at, id) < (:before_at, :before_id)
    ORDER BY created_at DESC, id DESC LIMIT :most
)
ORDER BY j.created_at DESC, j.id DESC

-- name: insert_backfill_run(job_id, mode, resume_daily, acts, message_cost_micros, estimate_id)
INSERT INTO backfill_runs (job_id, mode, resume_daily, acts, message_cost_micros, estimate_id)
VALUES (:job_id, :mode, :resume_daily, :acts, :message_cost_micros, :estimate_id)

-- name: select_open_backfills(endpoint_identity)
SELECT id, connector_type, status, CAST(target_categories AS text) AS target_categories,
    CAST(date_from AS text) AS date_from, CAST(date_to AS text) AS date_to
FROM backfill_jobs WHERE endpoint_identity = :endpoint_identity
    AND status IN ('pending', 'active', 'paused', 'cost_capped', 'error')
ORDER BY created_at, id

-- name: move_backfill(id, before, after, error, now)
UPDATE backfill_jobs SET status = :after, error = :error, updated_at = :now,
    started_at = CASE WHEN :after = 'active' THEN COALESCE(started_at, :now) ELSE started_at END,
    completed_at = CASE WHEN :after IN ('completed', 'cancelled') THEN :now END
WHERE id = :id AND status = :before RETURNING id

-- name: select_backfill_work(connector_type, endpoint_identity)
-- Active ones first: whoever worked on one may have died.
SELECT j.id, j.status, r.mode, r.lease_token, r.lease_until FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
WHERE j.endpoint_identity = :endpoint_identity AND j.connector_type = :connector_type AND j.status IN ('pending', 'active')
ORDER BY j.status, j.created_at, j.id

-- name: lease_backfill(id, lease_token, lease_until, lease_holder)
UPDATE backfill_runs SET lease_token = :lease_token, lease_until = :lease_until, lease_holder = :lease_holder
WHERE job_id = :id

-- name: renew_backfill_lease(id, lease_until)
UPDATE backfill_runs SET lease_until = :lease_until WHERE job_id = :id

-- name: end_backfill_lease(id)
UPDATE backfill_runs SET lease_token = NULL, lease_until = NULL, lease_holder = NULL WHERE job_id = :id

-- name: add_backfill_progress(id, batch_seq, failed, spent_micros, categories_json, paced_until)
UPDATE backfill_runs SET batch_seq = :batch_seq, rows_failed = rows_failed + :failed,
    spent_micros = spent_micros + :spent_micros, covered = accepted_new, categories_json = :categories_json,
    paced_until = :paced_until
WHERE job_id = :id

-- name: cap_backfill(id, day)
UPDATE backfill_runs SET capped_on = :day WHERE job_id = :id

-- name: hold_backfill(id, day)
UPDATE backfill_runs SET held_on = :day WHERE job_id = :id

-- name: release_backfill(id)
UPDATE backfill_runs SET held_on = NULL WHERE job_id = :id

-- name: select_capped_backfills(day)
SELECT j.id FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
WHERE j.status = 'cost_capped' AND r.resume_daily AND r.capped_on <> :day

-- name: open_backfill_day(id, day)
INSERT INTO backfill_days (job_id, day) VALUES (:id, :day) ON CONFLICT (job_id, day) DO NOTHING

-- name: add_backfill_day(id, day, micros)
UPDATE backfill_days SET micros = micros + :micros WHERE job_id = :id AND day = :day

-- name: reserve_backfill_day(id, day, micros, cap)
-- The first message of a day may cost more than the cap: otherwise a small cap would hold it for ever.
UPDATE backfill_days SET micros = micros + :micros
WHERE job_id = :id AND day = :day AND (micros + :micros <= :cap OR micros = 0) RETURNING micros

-- name: add_backfill_spend(id, micros)
UPDATE backfill_runs SET spent_micros = spent_micros + :micros WHERE job_id = :id

-- name: show_backfill_spend(id, recent)
-- In cents, rounded up, with what the messages that wait will probably cost.
UPDATE backfill_jobs SET cost_spent_cents = (
    SELECT (r.spent_micros + r.message_cost_micros * (
        SELECT count(*) FROM backfill_mail m WHERE m.job_id = r.job_id AND m.waits AND m.accepted_at >= :recent
    ) + 9999) / 10000 FROM backfill_runs r WHERE r.job_id = backfill_jobs.id
) WHERE id = :id

-- name: accept_backfilled(id, accepted, accepted_new, ingest_due_at)
UPDATE backfill_runs SET accepted = accepted + :accepted, accepted_new = accepted_new + :accepted_new,
    ingest_due_at = :ingest_due_at
WHERE job_id = :id

-- name: link_backfill_mail(inbox_id, message_id)
UPDATE backfill_mail SET message_id = :message_id WHERE inbox_id = :inbox_id

-- name: settle_backfill_mail(message_id)
UPDATE backfill_mail SET waits = false WHERE message_id = :message_id AND waits RETURNING job_id

-- name: drop_backfill_mail(inbox_id)
UPDATE backfill_mail SET waits = false WHERE inbox_id = :inbox_id AND waits RETURNING job_id

-- name: select_backfill_found(id)
SELECT category, year, messages FROM backfill_found WHERE job_id = :id ORDER BY year DESC, category

-- name: select_backfill_failures(id, most)
SELECT provider_message_id AS message_id, reason FROM backfill_failures WHERE job_id = :id
ORDER BY at DESC, provider_message_id LIMIT :most

-- name: select_accounts_with_backfills(now, latest)
-- Those whose connector has none in hand. A lease that ends later than one can last was written by a wrong clock.
SELECT a.id FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
JOIN accounts a ON a.endpoint_identity = j.endpoint_identity
WHERE j.status IN ('pending', 'active') AND a.state = 'active'
GROUP BY a.id HAVING count(CASE WHEN r.lease_until > :now AND r.lease_until <= :latest THEN 1 END) = 0 ORDER BY a.id

-- name: select_account_to_backfill(id)
SELECT a.id FROM backfill_jobs j JOIN accounts a ON a.endpoint_identity = j.endpoint_identity
WHERE j.id = :id AND a.state = 'active'

-- name: select_backfill_days(id, most)
SELECT day, micros FROM backfill_days WHERE job_id = :id ORDER BY day DESC LIMIT :most

-- name: lock_backfill(id)
SELECT id, endpoint_identity, status FROM backfill_jobs WHERE id = :id {FOR UPDATE}

-- name: lock_endpoint(endpoint_identity)
-- Of two that poll or create at once, the second sees what the first did.
SELECT endpoint_identity FROM accounts WHERE endpoint_identity = :endpoint_identity AND state <> 'removed'
{FOR NO KEY UPDATE}

-- name: record_backfill_rows(id, rows_processed, rows_skipped, cursor, now)
UPDATE backfill_jobs SET rows_processed = rows_processed + :rows_processed, rows_skipped = rows_skipped + :rows_skipped,
    cursor = COALESCE(:cursor{::jsonb}, cursor), updated_at = :now
WHERE id = :id

-- name: insert_backfill_mail(rows, now)
INSERT INTO backfill_mail (inbox_id, job_id, waits, accepted_at)
SELECT (value ->> 0){::uuid}, (value ->> 1){::uuid}, (value ->> 2){::boolean}, :now FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT DO NOTHING

-- name: insert_backfill_failures(id, rows, now)
INSERT INTO backfill_failures (job_id, provider_message_id, reason, at)
SELECT :id, value ->> 0, value ->> 1, :now FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true ON CONFLICT DO NOTHING

-- name: count_stored_in_categories(endpoint_identity, categories, since, until)
SELECT count(*) FROM messages m JOIN accounts a ON a.id = m.account_id
WHERE a.endpoint_identity = :endpoint_identity AND m.ingestion_tier = 'full' AND m.sent_at >= :since AND m.sent_at < :until
    AND EXISTS (
        SELECT 1 FROM message_categories c WHERE c.message_id = m.id AND c.category {= ANY(:categories::text[])}
    )

-- name: select_backfill_estimates(ids)
SELECT id, endpoint_identity, request_json, result_json, created_by, created_at FROM backfill_estimates WHERE id {= ANY(:ids::uuid[])}

-- name: add_backfill_found(rows)
-- In one order, so that two who store mail of the same backfill do not wait for each other in a circle.
INSERT INTO backfill_found (job_id, category, year, messages)
SELECT b.job_id, r.category, r.year, count(*) FROM (SELECT (value ->> 0){::uuid} AS inbox_id, value ->> 1 AS category, (value ->> 2){::bigint} AS year FROM {jsonb_array_elements(:rows::jsonb)} AS e) r
JOIN backfill_mail b ON b.inbox_id = r.inbox_id GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT (job_id, category, year) DO UPDATE SET messages = backfill_found.messages + excluded.messages

-- name: insert_backfill(id, connector_type, endpoint_identity, target_categories_json, date_from, date_to, rate_limit_per_hour, daily_cost_cap_cents, now)
INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, target_categories, date_from, date_to,
    rate_limit_per_hour, daily_cost_cap_cents, created_at, updated_at)
VALUES (:id, :connector_type, :endpoint_identity, :target_categories_json{::jsonb}, :date_from{::text}{::date}, :date_to{::text}{::date},
    :rate_limit_per_hour, :daily_cost_cap_cents, :now, :now)

-- name: share_backfills(ids)
-- What changes the state of a job waits until the messages accepted for it are visible.
SELECT j.id, j.endpoint_identity, j.status, j.rate_limit_per_hour, r.ingest_due_at
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id
WHERE j.id {= ANY(:ids::uuid[])} {ORDER BY j.id FOR SHARE OF j FOR UPDATE OF r}

-- name: select_held_backfills(day)
-- Those with parked decisions. Also one that is not held: a decision may have been parked just after the others were released.
SELECT r.job_id FROM backfill_runs r JOIN backfill_jobs j ON j.id = r.job_id
WHERE (r.held_on IS NULL OR r.held_on <> :day) AND j.status <> 'paused'
    AND EXISTS (SELECT 1 FROM {job_queue} q WHERE q.parked_by = 'backfill:' || r.job_id)

-- name: insert_message_categories(message_id, categories)
INSERT INTO message_categories (message_id, category) SELECT :message_id, value FROM {unnest(:categories::text[])} AS value
WHERE true ON CONFLICT DO NOTHING

-- name: select_live_backlog(queue, tiers)
SELECT 1 FROM {unnest(:tiers::text[])} AS value WHERE EXISTS (
    SELECT 1 FROM inbox_queue q WHERE q.state = 'waiting' AND q.queue = :queue AND q.tier = value
) LIMIT 1

-- name: drop_undecided_backfill_mail(since)
-- Compared as text: a payload may have anything in place of an id.
UPDATE backfill_mail SET waits = false WHERE waits AND message_id{::text} IN (
    SELECT payload_json ->> 'message_id' FROM {ended_jobs}
    WHERE state IN ('failed', 'canceled') AND finished_at >= :since AND type = 'classify'
) RETURNING job_id
