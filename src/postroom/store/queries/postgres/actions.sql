-- name: lock_action(id)
SELECT account_id, action_type, state, started_at, approved_by, action_hash, message_id, parameters_json, undo_hint_json FROM actions WHERE id = :id FOR UPDATE

-- name: lock_pause(scope)
-- Ending the pause, and then releasing the jobs that wait for it, waits until this job is parked under its key.
SELECT scope FROM pauses WHERE scope = :scope FOR SHARE

-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM job_queue WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- Held to the end of the transaction. Two accounts with the same hash only wait for each other.
SELECT 1 FROM pg_advisory_xact_lock(730541, hashtext(:asked_by))
