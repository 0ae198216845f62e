-- name: end_retry_waits_ahead(ahead, now)
-- A parked job looks again now and then; a job that was never tried may wait for a time that a person chose.
UPDATE job_queue SET not_before = :now, updated_at = :now
WHERE NOT ready AND state = 'queued' AND not_before > :now AND (attempts > 0 OR parked_by IS NOT NULL)
    AND updated_at > :ahead RETURNING seq

-- name: select_waits_ahead(ahead, now)
SELECT q.seq, b.type, b.payload_json, q.updated_at, q.not_before, b.id FROM job_queue q JOIN job_bodies b ON b.seq = q.seq
WHERE NOT q.ready AND q.state = 'queued' AND q.not_before > :now AND q.attempts = 0 AND q.parked_by IS NULL
    AND q.updated_at > :ahead

-- name: move_snooze(action_id, job_id, until)
-- What the action remembers of its snooze, so that pages and undo know the same time.
UPDATE actions SET pre_image_json = jsonb_set(pre_image_json::jsonb, ARRAY['snooze_until'], to_jsonb(:until::text))::json
WHERE id = :action_id AND pre_image_json ->> 'unsnooze_job_id' = :job_id;
UPDATE actions SET undo_hint_json = jsonb_set(undo_hint_json::jsonb, ARRAY['snooze_until'], to_jsonb(:until::text))::json
WHERE id = :action_id AND undo_hint_json ->> 'unsnooze_job_id' = :job_id

-- name: count_neglected(since)
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_queue WHERE NOT ready AND not_before <= :since LIMIT 1000) AS due),
    (SELECT count(*) FROM job_leases WHERE lease_until <= :since)
