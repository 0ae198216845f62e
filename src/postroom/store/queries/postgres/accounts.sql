-- name: lock_connecting()
-- Held to the end of the transaction. The number only has to differ from that of the migrations.
SELECT 1 FROM pg_advisory_xact_lock(7305418627335)
