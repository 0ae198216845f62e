-- name: lock_connecting()
-- One transaction writes at a time, so no lock is needed.
SELECT 1
