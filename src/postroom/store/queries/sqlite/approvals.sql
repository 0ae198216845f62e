-- name: lock_approval(id)
-- One transaction writes at a time, so no lock is needed.
SELECT account_id, message_id, actor, action_type, parameters_json, state, action_hash, approved_by, error, expires_at
FROM actions WHERE id = :id
