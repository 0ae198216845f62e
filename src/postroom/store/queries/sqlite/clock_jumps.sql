-- name: end_retry_waits_ahead(ahead, now)
-- A parked job looks again now and then; a job that was never tried may wait for a time that a person chose.
UPDATE job_rows SET not_before = :now, updated_at = :now
WHERE state = 'queued' AND ready = 0 AND not_before > :now AND (attempts > 0 OR parked_by IS NOT NULL)
    AND updated_at > :ahead RETURNING seq

-- name: select_waits_ahead(ahead, now)
SELECT seq, type, payload_json, updated_at, not_before, id FROM job_rows
WHERE state = 'queued' AND ready = 0 AND not_before > :now AND attempts = 0 AND parked_by IS NULL AND updated_at > :ahead

-- name: move_snooze(action_id, job_id, until)
-- What the action remembers of its snooze, so that pages and undo know the same time.
UPDATE actions SET pre_image_json = json_set(pre_image_json, '$.snooze_until', :until)
WHERE id = :action_id AND pre_image_json ->> 'unsnooze_job_id' = :job_id;
UPDATE actions SET undo_hint_json = json_set(undo_hint_json, '$.snooze_until', :until)
WHERE id = :action_id AND undo_hint_json ->> 'unsnooze_job_id' = :job_id

-- name: count_neglected(since)
SELECT (SELECT count(*) FROM (SELECT 1 FROM job_rows WHERE state = 'queued' AND ready = 0 AND not_before <= :since LIMIT 1000)),
    (SELECT count(*) FROM job_leases WHERE lease_until <= :since)
