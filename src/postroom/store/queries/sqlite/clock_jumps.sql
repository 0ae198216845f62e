-- part: asleep
state = 'queued' AND ready = 0

-- part: due
{asleep} AND not_before <= :since

-- part: with_bodies
job_rows q

-- name: move_snooze(action_id, job_id, until)
-- What the action remembers of its snooze, so that pages and undo know the same time.
UPDATE actions SET pre_image_json = json_set(pre_image_json, '$.snooze_until', :until)
WHERE id = :action_id AND pre_image_json ->> 'unsnooze_job_id' = :job_id;
UPDATE actions SET undo_hint_json = json_set(undo_hint_json, '$.snooze_until', :until)
WHERE id = :action_id AND undo_hint_json ->> 'unsnooze_job_id' = :job_id
