-- name: lock_action(id)
SELECT account_id, action_type, state, started_at, approved_by, asked_by, action_hash, message_id, parameters_json, undo_hint_json FROM actions WHERE id = :id

-- name: lock_pause(scope)
SELECT scope FROM pauses WHERE scope = :scope

-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM job_rows WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- One transaction writes at a time, so no lock is needed.
SELECT 1 WHERE :asked_by IS NOT NULL

-- name: select_undos_asked_by(actor)
-- The actions of others that somebody asked to undo, and the record of the undo once it has begun.
SELECT DISTINCT a.account_id, a.id, l.cause_action_id FROM audit u JOIN actions a ON a.id = u.object_id
    LEFT JOIN action_links l ON l.effect_action_id = a.id AND l.relation_type = 'undo_of'
WHERE u.actor = :actor AND u.action = 'action.undo' AND u.after_json IS NULL AND COALESCE(a.asked_by, '') <> :actor
