-- name: lock_action(id)
SELECT account_id, action_type, state, started_at, approved_by FROM actions WHERE id = :id

-- name: lock_pause(scope)
SELECT scope FROM pauses WHERE scope = :scope
