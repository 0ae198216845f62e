-- name: count_live_actions()
SELECT state, count(*) FROM actions WHERE state IN ('queued', 'approved_pending', 'executing') GROUP BY state

-- name: select_oldest_approval()
SELECT min(created_at) FROM actions WHERE state = 'approved_pending'

-- name: count_model_calls(day)
SELECT state, count(*) FROM model_calls WHERE day = :day GROUP BY state
