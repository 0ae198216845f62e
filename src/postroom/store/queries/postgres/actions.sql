-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM job_queue WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- Held to the end of the transaction. Two accounts with the same hash only wait for each other.
SELECT 1 FROM pg_advisory_xact_lock(730541, hashtext(:asked_by))
