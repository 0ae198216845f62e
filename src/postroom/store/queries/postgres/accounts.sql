-- name: lock_connecting()
-- Held to the end of the transaction. The number only has to differ from that of the migrations.
SELECT 1 FROM pg_advisory_xact_lock(7305418627335)

-- name: lock_account(id)
SELECT state, state_reason FROM accounts WHERE id = :id FOR UPDATE

-- name: lock_parking(key)
-- Making the account usable again, and then releasing its jobs, waits until this job is parked under the key.
SELECT state FROM accounts WHERE 'account:' || id::text = :key FOR SHARE

-- name: share_secret_key(id)
-- Dropping the key waits until what it has sealed is visible.
SELECT dropped_at FROM secret_keys WHERE id = :id FOR SHARE

-- name: lock_secret_key(id)
SELECT dropped_at FROM secret_keys WHERE id = :id FOR UPDATE
