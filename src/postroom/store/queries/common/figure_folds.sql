-- name: select_fold(name)
SELECT since, until FROM figure_folds WHERE name = :name

-- name: insert_fold(name, since)
INSERT INTO figure_folds (name, since, until) VALUES (:name, :since, :since) ON CONFLICT DO NOTHING

-- name: move_fold(name, since, until)
-- Nothing if somebody else was faster.
UPDATE figure_folds SET until = :until WHERE name = :name AND until = :since RETURNING until

-- name: select_first_rollups()
SELECT min(hour) FROM rollups

-- name: select_first_outbound()
SELECT min(hour) FROM outbound_service

-- name: forget_rollups(start)
DELETE FROM rollup_spans WHERE start = :start

-- name: forget_outbound(day)
DELETE FROM outbound_service_days WHERE day = :day;
DELETE FROM outbound_times_days WHERE day = :day;
DELETE FROM outbound_results_days WHERE day = :day

-- name: forget_evenness(hour)
DELETE FROM outbound_evenness WHERE hour = :hour

-- name: select_kept_evenness(since, until)
SELECT hour, members, served, gini, jain FROM outbound_evenness WHERE hour >= :since AND hour < :until ORDER BY hour
