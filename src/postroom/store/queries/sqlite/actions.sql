-- name: lock_action(id)
SELECT account_id, action_type, state, started_at, approved_by, action_hash, message_id, parameters_json, undo_hint_json FROM actions WHERE id = :id

-- name: lock_pause(scope)
SELECT scope FROM pauses WHERE scope = :scope

-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM jobs WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- One transaction writes at a time, so no lock is needed.
SELECT 1 WHERE :asked_by IS NOT NULL
