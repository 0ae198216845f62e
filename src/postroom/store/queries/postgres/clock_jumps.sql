-- part: asleep
NOT ready AND state = 'queued'

-- part: due
NOT ready AND not_before <= :since

-- part: with_bodies
job_queue q JOIN job_bodies b ON b.seq = q.seq

-- name: move_snooze(action_id, job_id, until)
-- What the action remembers of its snooze, so that pages and undo know the same time.
UPDATE actions SET pre_image_json = jsonb_set(pre_image_json::jsonb, ARRAY['snooze_until'], to_jsonb(:until::text))::json
WHERE id = :action_id AND pre_image_json ->> 'unsnooze_job_id' = :job_id;
UPDATE actions SET undo_hint_json = jsonb_set(undo_hint_json::jsonb, ARRAY['snooze_until'], to_jsonb(:until::text))::json
WHERE id = :action_id AND undo_hint_json ->> 'unsnooze_job_id' = :job_id
