-- name: count_live_actions()
SELECT state, count(*) FROM actions WHERE state IN ('queued', 'awaiting_approval', 'executing') GROUP BY state

-- name: select_oldest_approval()
SELECT min(created_at) FROM actions WHERE state = 'awaiting_approval'

-- name: count_model_calls(day)
SELECT state, count(*) FROM model_calls WHERE day = :day GROUP BY state
