-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM job_rows WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- One transaction writes at a time, so no lock is needed.
SELECT 1 WHERE :asked_by IS NOT NULL
